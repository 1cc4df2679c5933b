// Instants as the API server wants them written.

/** metav1.MicroTime: six digits after the second, or the API server refuses it. */
export const microTime = (wallMs: number): string => new Date(wallMs).toISOString().replace('Z', '000Z');

/** metav1.Time: whole seconds. */
export const secondTime = (wallMs: number): string => new Date(wallMs).toISOString().replace(/\.\d{3}Z$/, 'Z');
