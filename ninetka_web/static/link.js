// The line to the server. It stays open: when it breaks, it is opened again and the table joined anew.

/** @import { Answer, Message, Wish } from "../../tools/page/types" */

const TOKEN = "ninetka-token";

export class Link {
  /** @param {(message: Message) => void} hear gets every message but plain answers. */
  constructor(hear) {
    this.hear = hear;
    this.next = 1;
    /** @type {Map<number, { resolve: (text: string) => void, reject: (reason: Error) => void, text: string }>} */
    this.asked = new Map();
    this.delay = 250;
    this.socket = this.open();
  }

  open() {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.onopen = () => {
      this.delay = 250;
      const token = localStorage.getItem(TOKEN);
      // Only what is none of ours is left out. One that gets no answer is kept for the next time: it holds the seats.
      const own = token && /^[\w-]{43}$/.test(token) ? { token } : {};
      this.say({ type: "hello", ...own }).catch(() => socket.close());
    };
    socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    socket.onclose = () => {
      for (const { reject } of this.asked.values()) reject(new Error("the connection was lost"));
      this.asked.clear();
      setTimeout(() => (this.socket = this.open()), this.delay);
      this.delay = Math.min(4000, this.delay * 2);
      this.hear({ type: "lost" });
    };
    return socket;
  }

  /** @param {Message | Answer} message */
  receive(message) {
    switch (message.type) {
      case "text": {
        const asked = this.asked.get(message.id);
        if (asked) asked.text = message.text;
        return;
      }
      case "done":
      case "refused": {
        const asked = this.asked.get(message.id);
        this.asked.delete(message.id);
        if (message.type === "done") asked?.resolve(asked.text);
        else asked?.reject(new Error(message.reason));
        return;
      }
      case "welcome":
        localStorage.setItem(TOKEN, message.token);
    }
    this.hear(message);
  }

  /**
   * Send a message; resolves when it is done (with the text asked for, empty if there is none), rejects with the reason
   * it was refused.
   * @param {Wish} message
   * @returns {Promise<string>}
   */
  say(message) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error("there is no connection to the server"));
        return;
      }
      this.asked.set(id, { resolve, reject, text: "" });
      this.socket.send(JSON.stringify({ ...message, id }));
    });
  }
}
