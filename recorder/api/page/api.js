// Asks the recorder, with the token of whoever uses the page.

const KEY = 'recorder.access_token';

/** The token from the address (`#access_token=…`, which no server sees and which is removed), or the one kept from before. */
export function loadToken() {
  const given = new URLSearchParams(window.location.hash.slice(1)).get('access_token');
  if (given) {
    saveToken(given);
    window.history.replaceState(null, '', window.location.pathname + window.location.search);
  }
  return given ?? localStorage.getItem(KEY) ?? '';
}

export function saveToken(token) {
  if (token) localStorage.setItem(KEY, token);
  else localStorage.removeItem(KEY);
}

export class ApiError extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** @param {string} path @param {string} token */
export async function getJson(path, token) {
  const response = await fetch(path, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, body.detail ?? `status ${response.status}`);
  return body;
}

/** The address of a file of the archive for a video element, which cannot send headers. */
export function recordingUrl(filename, token) {
  const path = filename.split('/').map(encodeURIComponent).join('/');
  return `/recordings/${path}${token ? `?access_token=${encodeURIComponent(token)}` : ''}`;
}
