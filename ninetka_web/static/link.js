// The line to the server. It stays open: when it breaks, it is opened again and the table joined anew.

const TOKEN = "ninetka-token";

export class Link {
  /** @param {(message: object) => void} hear gets every message but plain answers. */
  constructor(hear) {
    this.hear = hear;
    this.table = "";
    this.next = 1;
    this.asked = new Map();
    this.delay = 250;
    this.open();
  }

  open() {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    this.socket = new WebSocket(url);
    this.socket.onopen = () => {
      this.delay = 250;
      const token = localStorage.getItem(TOKEN);
      // Only what is none of ours is left out. One that gets no answer is kept for the next time: it holds the seats.
      this.say({ type: "hello", ...(/^[\w-]{43}$/.test(token) && { token }) }).catch(() => this.socket.close());
    };
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = () => {
      for (const { reject } of this.asked.values()) reject(new Error("the connection was lost"));
      this.asked.clear();
      this.hear({ type: "lost" });
      setTimeout(() => this.open(), this.delay);
      this.delay = Math.min(4000, this.delay * 2);
    };
  }

  receive(message) {
    if (message.type === "welcome") localStorage.setItem(TOKEN, message.token);
    if (["done", "refused", "text"].includes(message.type)) {
      const asked = this.asked.get(message.id);
      if (message.type === "text") {
        if (asked) asked.text = message.text;
        return;
      }
      this.asked.delete(message.id);
      if (message.type === "done") asked?.resolve(asked.text);
      else if (asked) asked.reject(new Error(message.reason));
      return;
    }
    this.hear(message);
  }

  /** Send a message; resolves when it is done (with the text asked for), rejects with the reason it was refused. */
  say(message) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error("there is no connection to the server"));
        return;
      }
      this.asked.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ ...message, id }));
    });
  }
}
