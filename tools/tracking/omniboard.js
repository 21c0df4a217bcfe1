// Starts Omniboard on 127.0.0.1 only, answers its own pages only (door.js), and lets the first visit open on the columns
// of columns.json.
//
//   MONGO_URI=… PORT=… ADDRESS=… node omniboard.js FOLDER_WITH_NODE_MODULES
//
// Omniboard itself listens on all interfaces, answers everybody, tries the next port when one is taken, and shows every
// parameter as a column; none of that can be configured, so it is decided here, around it. It ends with its standard
// input.

'use strict';

const net = require('net');
const path = require('path');
const columns = require('./columns.json');
const door = require('./door.js');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, callback) {
  const [answer] = this.listeners('request');
  const known = door.addresses(port, process.env.ADDRESS);
  this.removeAllListeners('request');
  this.on('request', (request, response) => {
    const reason = door.refusal(request, known);
    if (reason) refuse(response, reason);
    else if (request.url === '/') welcome(response);
    else answer(request, response);
  });
  this.prependListener('error', (error) => {
    console.error(`cannot listen on port ${port}: ${error.code}`);
    process.exit(1);
  });
  return listen.call(this, port, '127.0.0.1', callback);
};

function refuse(response, reason) {
  const text = `${reason}\n`;
  const length = Buffer.byteLength(text); // said beforehand, it is sent in one piece
  response.writeHead(403, {'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': length, Connection: 'close'});
  response.end(text);
}

// The page keeps its table's layout in the browser; a first visit finds it laid out.
function welcome(response) {
  const layout = JSON.stringify(tableLayout()).replace(/</g, '\\u003c');
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.end(`<!doctype html><title>Omniboard</title><script>
    const key = 'default|RunsTable|1';
    if (!localStorage.getItem(key)) localStorage.setItem(key, JSON.stringify(${layout}));
    location.replace('/sacred');
  </script>`);
}

function tableLayout() {
  const named = columns.map((column) => column.name);
  const order = ['_id', 'experiment_name', ...named, 'status', 'duration', 'start_time', 'tags', 'notes'];
  const hidden = ['hostname', 'command', 'heartbeat', 'stop_time', 'result', 'format', 'resources'];
  const widths = {_id: 60, experiment_name: 125, status: 125, duration: 85, start_time: 150, tags: 140, notes: 120};
  const paths = {experiment_name: 'experiment.name', hostname: 'host.hostname', tags: 'omniboard.tags', notes: 'omniboard.notes'};
  columns.forEach((column) => {
    widths[column.name] = column.width;
    paths[column.name] = column.path;
  });
  return {
    columnOrder: order,
    columnWidths: Object.fromEntries([...order, ...hidden].map((name) => [name, widths[name] || 150])),
    columnNameMap: paths,
    dropdownOptions: [...order, ...hidden].map((name) => ({
      label: name.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' '),
      value: name,
      selected: order.includes(name),
    })),
    metricAndCustomColumns: columns.map((column) => ({name: column.name, value: column.path})),
  };
}

process.stdin.on('end', () => process.exit(0)).resume();
const folder = path.join(path.resolve(process.argv[2]), 'node_modules', 'omniboard');
process.env.npm_package_version = require(path.join(folder, 'package.json')).version;
process.argv.splice(2);
require(path.join(folder, 'dist', 'start.js'));
