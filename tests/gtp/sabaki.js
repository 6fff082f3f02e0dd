// Play games with the engine as Sabaki does, with Sabaki's own controller module; print a report as JSON.
//     node sabaki.js PATH_OF_@sabaki/gtp PROGRAM [ARGUMENT...]

const [modulePath, program, ...args] = process.argv.slice(2);
const { Controller, ControllerStateTracker } = require(modulePath);

async function playGame(controller, told) {
  const moves = [];
  for (let passes = 0; passes < 2 && moves.length < 400; ) {
    const color = moves.length % 2 ? "W" : "B";
    const { content, error } = await controller.sendCommand({ name: "genmove", args: [color] });
    if (error) throw new Error(content);
    moves.push(content);
    passes = content.toLowerCase() === "pass" ? passes + 1 : 0;
  }
  const { content } = await controller.sendCommand({ name: "final_score" });
  told.games.push({ moves, score: content });
}

async function analyze(controller, name, args, told) {
  const lines = [];
  let stop;
  const enough = new Promise((resolve) => (stop = resolve));
  const done = controller.sendCommand({ name, args }, ({ line }) => {
    if (line.startsWith("info ") || line.startsWith("play ")) lines.push(line);
    if (lines.length >= 2) stop();
  });
  await Promise.race([enough, done]);
  if (!name.includes("genmove")) await controller.sendCommand({ name: "protocol_version" }); // as Sabaki stops an analysis
  await done;
  told.analyses.push({ name, lines });
}

async function main() {
  const told = { games: [], analyses: [], boards: [], stderr: [] };
  const controller = new Controller(program, args);
  const tracker = new ControllerStateTracker(controller);
  controller.on("stderr", ({ content }) => told.stderr.push(content));
  controller.start();
  const ask = async (name, args = []) => (await controller.sendCommand({ name, args })).content;
  told.hello = [await ask("name"), await ask("protocol_version")];
  const history = [];
  await tracker.sync({ komi: 7, boardsize: [9, 9], history });
  await playGame(controller, told);
  await tracker.sync({ komi: 6.5, boardsize: [9, 9], history });
  await playGame(controller, told);

  history.push({ name: "set_free_handicap", args: ["A1", "C3", "J9"] });
  for (const vertex of ["D4", "E5", "F6"]) history.push({ name: "play", args: ["W", vertex] }); // as if set up
  history.push({ name: "play", args: ["B", "pass"] });
  await tracker.sync({ komi: 0.5, boardsize: [9, 9], history });
  told.boards.push(await ask("showboard"));
  await tracker.sync({ history: history.slice(0, 3) }); // two turns are undone
  told.boards.push(await ask("showboard"));

  for (const name of ["lz-analyze", "kata-analyze", "analyze"]) await analyze(controller, name, ["W", "2"], told);
  await analyze(controller, "lz-genmove_analyze", ["W", "1"], told);
  told.history = tracker.state.history;
  await controller.stop();
  told.running = controller.process != null;
  console.log(JSON.stringify(told));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
