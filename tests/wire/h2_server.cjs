// An HTTP/2 server that counts POSTs and ends connections in the manner that the path names. Playwright's own node
// runs it. Arguments: a PEM file with key and chain. It prints its port, then each POST's path as it arrives.
const fs = require("fs");
const http2 = require("http2");

const pem = fs.readFileSync(process.argv[2]);
const server = http2.createSecureServer({ key: pem, cert: pem });
const seen = new Set();
const sockets = new Map();

server.on("connection", (raw) => sockets.set(raw.remotePort, raw));

const ends = {
  fin: (session) => session.destroy(), // GOAWAY, farewell, FIN
  end: (session, raw) => raw.end(), // FIN, nothing said
  rst: (session, raw) => raw.resetAndDestroy(),
};

server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const path = headers[":path"];
  stream.resume().on("end", () => {
    if (headers[":method"] === "POST") {
      console.log(path);
      const end = ends[path.split("/")[1]];
      if (end && !seen.has(path)) {
        seen.add(path);
        end(stream.session, sockets.get(stream.session.socket.remotePort));
        return;
      }
    }
    stream.respond({ ":status": 200, "content-type": "text/html" });
    if (!path.startsWith("/news")) {
      stream.end("ok");
      return;
    }
    // An answer to another request that goes on while the effect is in doubt.
    const ticks = setInterval(() => (stream.destroyed ? clearInterval(ticks) : stream.write("x".repeat(500))), 5);
  });
});
server.on("sessionError", () => {});
server.on("session", (session) => session.on("error", () => {}));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
