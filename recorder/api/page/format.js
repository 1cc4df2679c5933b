// Formats times, sizes and streams for people.

const CODECS = {
  h264: 'H.264',
  h265: 'H.265',
  mjpeg: 'Motion JPEG',
  aac: 'AAC',
  opus: 'Opus',
  flac: 'FLAC',
  mp2: 'MP2',
  mp3: 'MP3',
};

export function describeCodecs({ video, audio }, transport) {
  const parts = [];
  if (video) parts.push(`${CODECS[video.codec] ?? video.codec} ${video.width}×${video.height}`);
  if (audio) parts.push(`${CODECS[audio.codec] ?? audio.codec} ${audio.sample_rate / 1000} kHz`);
  if (video && !audio) parts.push('no audio');
  if (audio && !video) parts.push('sound only');
  if (transport) parts.push(transport.toUpperCase());
  return parts.join(' · ');
}

export const formatBitrate = (bits) =>
  bits >= 1_000_000 ? `${(bits / 1_000_000).toFixed(1)} Mbit/s` : `${Math.round(bits / 1000)} kbit/s`;

export const formatSize = (bytes) =>
  bytes >= 1_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${Math.ceil(bytes / 1000)} kB`;

/** Today's times without the date. */
export function formatTime(timestamp) {
  const time = new Date(timestamp);
  const timeStyle = 'medium';
  if (time.toDateString() === new Date().toDateString()) return time.toLocaleTimeString(undefined, { timeStyle });
  return time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle });
}
