// client.js WAY HOST: one request by one of Node's clients.
const [way, host] = process.argv.slice(2);

if (way === 'fetch') {
  fetch(`https://${host}/`).then((response) => response.text()).then(console.log);
} else {
  require('http').get(`http://${host}/`, (response) => response.on('data', (data) => console.log(`${data}`)));
}
