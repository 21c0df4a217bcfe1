// Who may ask: the page itself, opened under an address that the user knows. A page of another site, or another name
// that somebody made point to 127.0.0.1, is sent away.

'use strict';

// The addresses that a browser on this machine may use, and the one that the user named besides.
function addresses(port, named) {
  const hosts = ['localhost', '127.0.0.1', '[::1]'];
  const short = Number(port) === 80 ? hosts : []; // browsers leave this port out
  return new Set([...hosts.map((host) => `${host}:${port}`), ...short, ...(named ? [named] : [])]);
}

// Why the request is refused, in a sentence; null where it is welcome.
function refusal(request, known) {
  const hosts = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host');
  const host = (request.headers.host || '').toLowerCase();
  if (hosts.length !== 1 || !known.has(host)) {
    return `Host is ${JSON.stringify(host)}, expected one of ${[...known].join(', ')}; name another with --address.`;
  }
  if (!request.url.startsWith('/')) return 'The request names a whole URL, expected a path.';
  const {origin} = request.headers;
  if (origin !== undefined && origin.toLowerCase().replace(/^https?:\/\//, '') !== host) {
    return `The request comes from ${JSON.stringify(origin)}, expected a page of ${host}.`;
  }
  const site = request.headers['sec-fetch-site'] || 'same-origin';
  if (!['same-origin', 'none'].includes(site) && !isFollowedLink(request)) {
    return `The request comes from another site (${JSON.stringify(site)}), expected a page of ${host}.`;
  }
  return null;
}

// A link that a person followed from elsewhere opens a page of its own; who linked cannot read or change anything.
function isFollowedLink({method, headers}) {
  return method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}

module.exports = {addresses, refusal};
