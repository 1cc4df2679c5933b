// Requests to the recorder, with the token of the user.

const KEY = 'recorder.access_token';

/** The token from the address (`#access_token=…`; no server receives it, and it is removed), or the stored one. */
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

/** @param {string | URL} path @param {string} token @param {AbortSignal} [signal] */
export const getJson = (path, token, signal) => ask(path, token, { signal });

/** @param {string | URL} path @param {unknown} value @param {string} token */
export const postJson = (path, value, token) =>
  ask(path, token, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
  });

/** @param {string | URL} path @param {string} token @param {RequestInit} [init] */
async function ask(path, token, init = {}) {
  const headers = new Headers(init.headers);
  if (token) headers.set('authorization', `Bearer ${token}`);
  const response = await fetch(path, { ...init, headers });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, body.detail ?? `status ${response.status}`);
  return body;
}

/**
 * The address of the thumbnail of a camera, for an element that cannot send headers.
 *
 * @param {string} base of the node that has the camera
 * @param {string} cameraId
 * @param {string} token
 */
export function thumbnailUrl(base, cameraId, token) {
  const url = new URL(`/api/cameras/${encodeURIComponent(cameraId)}/thumbnail`, base);
  if (token) url.searchParams.set('access_token', token);
  return url.href;
}

/**
 * The address of a file of the archive for a video element or a link, which cannot send headers.
 *
 * @param {string} playback address of the playback listener: `node.playback` of a camera
 * @param {string} filename
 * @param {string} token
 * @param {Record<string, string>} [parameters]
 */
export function recordingUrl(playback, filename, token, parameters = {}) {
  const url = new URL(filename.split('/').map(encodeURIComponent).join('/'), `${playback}/`);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  if (token) url.searchParams.set('access_token', token);
  return url.href;
}
