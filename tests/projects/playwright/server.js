const { createServer } = require("node:http");

const page = `<!doctype html><title>Counter</title><button>0</button><p></p><script>
const button = document.querySelector("button");
button.onclick = () => { localStorage.count = button.textContent = Number(button.textContent) + 1; };
fetch("/data").then((answer) => answer.json()).then((data) => document.querySelector("p").textContent = data.text);
</script>`;

createServer((request, response) => {
  const isData = request.url === "/data";
  response.setHeader("content-type", isData ? "application/json" : "text/html");
  response.end(isData ? JSON.stringify({ text: "from the server" }) : page);
}).listen(Number(process.argv[2]), "127.0.0.1");
