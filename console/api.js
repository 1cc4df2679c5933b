// Requests to a recorder, with a token or with the cookie of a session.

export class ApiError extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/**
 * The JSON of an answer. Rejects with ApiError for an error status.
 *
 * @param {string | URL} path @param {string} [token] @param {AbortSignal} [signal]
 */
export async function getJson(path, token, signal) {
  const response = await fetch(path, { signal, ...(token && { headers: { authorization: `Bearer ${token}` } }) });
  // A proxy answers in another format.
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, body.detail ?? `status ${response.status}`);
  return body;
}
