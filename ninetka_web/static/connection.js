// The WebSocket connection to the server. When it is lost, it is opened again, and the page joins its table again.

/** @import { Answer, ClientMessage, ServerMessage } from "../../tools/page/types" */

const TOKEN_KEY = "ninetka-token";

export class Connection {
  /** @param {(message: ServerMessage) => void} onMessage is called with every message except answers. */
  constructor(onMessage) {
    this.onMessage = onMessage;
    this.nextId = 1;
    /** @type {Map<number, { resolve: (text: string) => void, reject: (reason: Error) => void, text: string }>} */
    this.pending = new Map();
    this.delay = 250;
    this.socket = this.open();
  }

  open() {
    const url = new URL("/ws", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.onopen = () => {
      this.delay = 250;
      const token = localStorage.getItem(TOKEN_KEY);
      // Only a malformed token is left out. A token stays stored if there is no answer, because the seats depend on it.
      const validToken = token && /^[\w-]{43}$/.test(token) ? { token } : {};
      this.send({ type: "hello", ...validToken }).catch(() => socket.close());
    };
    socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    socket.onclose = () => {
      for (const { reject } of this.pending.values()) reject(new Error("the connection was lost"));
      this.pending.clear();
      setTimeout(() => (this.socket = this.open()), this.delay);
      this.delay = Math.min(4000, this.delay * 2);
      this.onMessage({ type: "lost" });
    };
    return socket;
  }

  /** @param {ServerMessage | Answer} message */
  receive(message) {
    switch (message.type) {
      case "text": {
        const request = this.pending.get(message.id);
        if (request) request.text = message.text;
        return;
      }
      case "done":
      case "refused": {
        const request = this.pending.get(message.id);
        this.pending.delete(message.id);
        if (message.type === "done") request?.resolve(request.text);
        else request?.reject(new Error(message.reason));
        return;
      }
      case "welcome":
        localStorage.setItem(TOKEN_KEY, message.token);
    }
    this.onMessage(message);
  }

  /**
   * Send a message. When the server has carried it out, the promise resolves with the requested text, or "" if the
   * message requests none. It rejects with the reason if the server refuses the message or cannot be reached.
   * @param {ClientMessage} message
   * @returns {Promise<string>}
   */
  send(message) {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error("there is no connection to the server"));
        return;
      }
      this.pending.set(id, { resolve, reject, text: "" });
      this.socket.send(JSON.stringify({ ...message, id }));
    });
  }
}
