// Play games with the engine as Sabaki does, with Sabaki's own controller module; print a report as JSON.
//     node sabaki.js PATH_OF_@sabaki/gtp PROGRAM [ARGUMENT...]

const [modulePath, program, ...args] = process.argv.slice(2);
const { Controller, ControllerStateTracker } = require(modulePath);

async function playGame(controller, report) {
  const moves = [];
  for (let passes = 0; passes < 2 && moves.length < 400; ) {
    const color = moves.length % 2 ? "W" : "B";
    const { content, error } = await controller.sendCommand({ name: "genmove", args: [color] });
    if (error) throw new Error(content);
    moves.push(content);
    passes = content.toLowerCase() === "pass" ? passes + 1 : 0;
  }
  const { content } = await controller.sendCommand({ name: "final_score" });
  report.games.push({ moves, score: content });
}

async function analyze(controller, name, args, report) {
  const lines = [];
  let stop;
  const enough = new Promise((resolve) => (stop = resolve));
  const done = controller.sendCommand({ name, args }, ({ line }) => {
    if (line.startsWith("info ") || line.startsWith("play ")) lines.push(line);
    if (lines.length >= 2) stop();
  });
  await Promise.race([enough, done]);
  if (!name.includes("genmove")) await controller.sendCommand({ name: "protocol_version" }); // Sabaki stops an analysis in this way
  await done;
  report.analyses.push({ name, lines });
}

async function main() {
  const report = { games: [], analyses: [], boards: [], stderr: [] };
  const controller = new Controller(program, args);
  const tracker = new ControllerStateTracker(controller);
  controller.on("stderr", ({ content }) => report.stderr.push(content));
  controller.start();
  const ask = async (name, args = []) => (await controller.sendCommand({ name, args })).content;
  report.hello = [await ask("name"), await ask("protocol_version")];
  const history = [];
  await tracker.sync({ komi: 7, boardsize: [9, 9], history });
  await playGame(controller, report);
  await tracker.sync({ komi: 6.5, boardsize: [9, 9], history });
  await playGame(controller, report);

  history.push({ name: "set_free_handicap", args: ["A1", "C3", "J9"] });
  for (const vertex of ["D4", "E5", "F6"]) history.push({ name: "play", args: ["W", vertex] }); // like stones that were set up
  history.push({ name: "play", args: ["B", "pass"] });
  await tracker.sync({ komi: 0.5, boardsize: [9, 9], history });
  report.boards.push(await ask("showboard"));
  await tracker.sync({ history: history.slice(0, 3) }); // two turns are undone
  report.boards.push(await ask("showboard"));

  for (const name of ["lz-analyze", "kata-analyze", "analyze"]) await analyze(controller, name, ["W", "2"], report);
  await analyze(controller, "lz-genmove_analyze", ["W", "1"], report);
  report.history = tracker.state.history;
  await controller.stop();
  report.running = controller.process != null;
  console.log(JSON.stringify(report));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
