// Answers of other nodes, which this node passes on. A node that was taken over answers what an attacker likes, and the browser takes
// the answer for one of this node.

/** What nodes answer with, besides pages and their scripts. */
const TYPES =
  /^(?:application\/(?:json|problem\+json|zip|gzip|octet-stream|vnd\.apple\.mpegurl)|image\/(?:jpeg|png|webp|avif|gif)|video\/(?:mp4|iso\.segment)|text\/(?:plain|event-stream)|multipart\/byteranges)(?=\s*(?:;|$))/i;
/** No script runs. */
const POLICY = "default-src 'none'; sandbox";

/** The headers with which the answer cannot act in the origin of this node. `type`: its `Content-Type`. */
export const harmless = (type: string | undefined): Record<string, string> => ({
  ...(type !== undefined && { 'content-type': TYPES.test(type) ? type : 'application/octet-stream' }),
  'content-security-policy': POLICY,
});
