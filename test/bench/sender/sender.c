// N cameras for the bench, without Node: an RTSP server on 127.0.0.1, or ADDRESS, that sends prepared RTP packets in real time.
//
// Every camera shows the same prepared pictures, each at its own phase of the frame interval. Before the first slice
// of each picture goes an SEI message (user_data_unregistered) with the camera, the picture's number and the time of
// CLOCK_MONOTONIC at which it is handed to the kernel: whoever holds the picture can tell its age and what is missing.
//
//   sender PORT MEDIA CAMERAS frame|packet|wire [ADDRESS [SPREAD_MS]]
//
// The cameras' clocks are spread over SPREAD_MS, one frame interval by default: over a whole group of pictures, their key
// frames come one after the other, as those of cameras that know nothing of each other do.
//
//   frame   one write for all packets of a picture, as GStreamer's RTSP server does
//   packet  one write a packet, back to back, as live555 does
//   wire    one write a packet, spaced as they leave a 100 Mbit/s Ethernet port
//
// Commands on standard input: `quiet` (stop sending after the pictures already begun), `stats` (one JSON line a
// connection, then `end`), end of file: exit.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 1024
#define SPARE_CONNECTIONS 64 // as many as one round of events can open
#define QUEUE_BYTES (4u << 20) // as much as a camera may hold back for a slow reader before it drops pictures
#define QUEUE_PACKETS 8192u
#define FRAME_NS 40000000LL
#define VIDEO_TICKS 3600u
#define AUDIO_SAMPLES 1024u
#define REPORT_NS 5000000000LL // RTCP sender reports
#define WIRE_NS_PER_BYTE 80LL  // 100 Mbit/s
#define WIRE_OVERHEAD 78       // Ethernet, IP and TCP headers, preamble and gap around a packet

typedef struct { const uint8_t *data; uint32_t size; bool marker; } packet;
typedef struct { bool key; uint32_t packets, sei_at; packet *list; } picture;

static struct {
  char *sdp;
  uint32_t pictures, audio_frames, sample_rate;
  picture *video;
  packet *audio;
} media;

typedef struct {
  int fd; // -1: the connection is over, its counters remain
  int camera;
  bool playing, wants_write, has_audio, has_video, closing;
  uint8_t video_channel, audio_channel;
  char request[8192];
  size_t request_size;
  uint8_t *queue;
  size_t queue_start, queue_end;
  uint16_t lengths[2 * QUEUE_PACKETS]; // of the packets in the queue; the first may be partly written
  uint32_t lengths_start, lengths_end;
  int64_t next_video, next_audio; // numbers of the next picture and audio frame on the camera's timeline
  int64_t next_report_ns, wire_free_ns;
  uint16_t video_sequence, audio_sequence;
  uint32_t video_packets, video_octets, audio_packets, audio_octets;
  int64_t first_frame, first_key_frame, last_frame, audio_sent, dropped, bytes, writes;
} connection;

static connection *connections[MAX_CONNECTIONS];
static const char *host = "127.0.0.1";
static int connection_count, camera_count, epoll_fd, port;
static int64_t origin_ns, spread_ns = FRAME_NS;
static bool quiet;
static enum { WRITE_FRAME, WRITE_PACKET, WRITE_WIRE } write_mode;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

// Spreads the cameras by the golden ratio: any number of them lies evenly.
static int64_t phase_ns(int camera) {
  double turns = camera * 0.6180339887498949;
  return (int64_t)((turns - (int)turns) * (double)spread_ns);
}
static int64_t video_due(int camera, int64_t n) { return origin_ns + phase_ns(camera) + n * FRAME_NS; }
static int64_t audio_due(int camera, int64_t n) {
  return origin_ns + phase_ns(camera) + (int64_t)((double)n * AUDIO_SAMPLES * 1e9 / media.sample_rate);
}
static uint32_t video_stamp(int camera, int64_t n) { return (uint32_t)(n * VIDEO_TICKS) + 0x10000000u + (uint32_t)camera * 7919u; }
static uint32_t audio_stamp(int camera, int64_t n) { return (uint32_t)(n * AUDIO_SAMPLES) + 0x20000000u + (uint32_t)camera * 104729u; }

static uint32_t read_u32(const uint8_t **p) {
  uint32_t v;
  memcpy(&v, *p, 4);
  *p += 4;
  return v;
}

static void load_media(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die(path);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  uint8_t *bytes = malloc((size_t)size);
  if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) die(path);
  fclose(file);
  const uint8_t *p = bytes;
  if (memcmp(p, "KNB1", 4) != 0) { fprintf(stderr, "%s: not prepared media\n", path); exit(1); }
  p += 4;
  uint32_t sdp_size = read_u32(&p);
  media.sdp = strndup((const char *)p, sdp_size);
  p += sdp_size;
  media.pictures = read_u32(&p);
  media.audio_frames = read_u32(&p);
  media.sample_rate = read_u32(&p);
  media.video = calloc(media.pictures, sizeof *media.video);
  media.audio = calloc(media.audio_frames, sizeof *media.audio);
  for (uint32_t i = 0; i < media.pictures; i++) {
    picture *v = &media.video[i];
    v->key = read_u32(&p) != 0;
    v->sei_at = read_u32(&p);
    v->packets = read_u32(&p);
    v->list = calloc(v->packets, sizeof *v->list);
    for (uint32_t k = 0; k < v->packets; k++) {
      uint32_t word = read_u32(&p);
      v->list[k] = (packet){ .data = p, .size = word & 0xffff, .marker = (word >> 31) != 0 };
      p += v->list[k].size;
    }
  }
  for (uint32_t i = 0; i < media.audio_frames; i++) {
    uint32_t length = read_u32(&p);
    media.audio[i] = (packet){ .data = p, .size = length, .marker = true };
    p += length;
  }
}

static void watch(connection *c, bool write) {
  if (c->wants_write == write) return;
  c->wants_write = write;
  struct epoll_event event = { .events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = c };
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void hang_up(connection *c) {
  if (c->fd < 0) return;
  close(c->fd);
  c->fd = -1;
  c->playing = false;
  free(c->queue);
  c->queue = NULL;
}

// Hands queued packets to the kernel as the write mode says.
static void pump(connection *c) {
  while (c->fd >= 0 && c->queue_start < c->queue_end) {
    size_t bytes = c->queue_end - c->queue_start;
    if (write_mode != WRITE_FRAME) bytes = c->lengths[c->lengths_start];
    if (write_mode == WRITE_WIRE) {
      int64_t now = now_ns();
      if (now < c->wire_free_ns) return;
      if (c->wire_free_ns < now - 1000000) c->wire_free_ns = now;
      c->wire_free_ns += (int64_t)(bytes + WIRE_OVERHEAD) * WIRE_NS_PER_BYTE;
    }
    ssize_t sent = send(c->fd, c->queue + c->queue_start, bytes, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN) watch(c, true);
      else hang_up(c);
      return;
    }
    c->writes++;
    c->bytes += sent;
    c->queue_start += (size_t)sent;
    while (sent > 0) {
      uint16_t *length = &c->lengths[c->lengths_start];
      if (sent < *length) { *length = (uint16_t)(*length - sent); break; }
      sent -= *length;
      c->lengths_start++;
    }
  }
  if (c->fd < 0) return;
  c->queue_start = c->queue_end = 0;
  c->lengths_start = c->lengths_end = 0;
  watch(c, false);
  if (c->closing) hang_up(c);
}

static bool room(connection *c, size_t bytes, uint32_t packets) {
  if (c->queue_end - c->queue_start + bytes > QUEUE_BYTES) return false;
  if (c->lengths_end - c->lengths_start + packets > QUEUE_PACKETS) return false;
  // There is twice the memory: a queue that stays full is moved once for each time that it was sent, not for each picture.
  if (c->queue_end + bytes > 2 * QUEUE_BYTES || c->lengths_end + packets > 2 * QUEUE_PACKETS) {
    memmove(c->queue, c->queue + c->queue_start, c->queue_end - c->queue_start);
    c->queue_end -= c->queue_start;
    c->queue_start = 0;
    memmove(c->lengths, c->lengths + c->lengths_start, (c->lengths_end - c->lengths_start) * sizeof *c->lengths);
    c->lengths_end -= c->lengths_start;
    c->lengths_start = 0;
  }
  return true;
}

static void put_u16(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; }
static void put_u32(uint8_t *p, uint32_t v) { put_u16(p, v >> 16); put_u16(p + 2, v); }

// RFC 2326 §10.12 framing around bytes that the caller has written behind it.
static void queue_framed(connection *c, uint8_t channel, uint32_t size) {
  uint8_t *p = c->queue + c->queue_end;
  p[0] = '$';
  p[1] = channel;
  put_u16(p + 2, size);
  c->lengths[c->lengths_end++] = (uint16_t)(size + 4);
  c->queue_end += size + 4;
}

static void queue_rtp(connection *c, bool video, bool marker, uint32_t stamp, const uint8_t *payload, uint32_t size) {
  uint8_t *p = c->queue + c->queue_end + 4;
  p[0] = 0x80;
  p[1] = (uint8_t)((marker ? 0x80 : 0) | (video ? 96 : 97));
  put_u16(p + 2, video ? c->video_sequence++ : c->audio_sequence++);
  put_u32(p + 4, stamp);
  put_u32(p + 8, (video ? 0x56000000u : 0x41000000u) + (uint32_t)c->camera);
  memcpy(p + 12, payload, size);
  queue_framed(c, video ? c->video_channel : c->audio_channel, size + 12);
  if (video) { c->video_packets++; c->video_octets += size; }
  else { c->audio_packets++; c->audio_octets += size; }
}

// H.264 SEI, user_data_unregistered: 16 bytes of UUID, then text without any zero byte, so nothing needs escaping.
static uint32_t format_sei(uint8_t *sei, int camera, int64_t frame, int64_t time_ns) {
  static const uint8_t uuid[16] = "knvr-bench-frame";
  char text[64];
  int length = snprintf(text, sizeof text, "%03d:%08lld:%019lld;", camera, (long long)frame, (long long)time_ns);
  sei[0] = 0x06;
  sei[1] = 0x05;
  sei[2] = (uint8_t)(16 + length);
  memcpy(sei + 3, uuid, 16);
  memcpy(sei + 19, text, (size_t)length);
  sei[19 + length] = 0x80;
  return (uint32_t)(20 + length);
}

static void send_picture(connection *c) {
  int64_t n = c->next_video++;
  const picture *v = &media.video[n % media.pictures];
  size_t bytes = 128;
  for (uint32_t i = 0; i < v->packets; i++) bytes += v->list[i].size + 16;
  if (!room(c, bytes, v->packets + 1)) { c->dropped++; return; }
  uint32_t stamp = video_stamp(c->camera, n);
  for (uint32_t i = 0; i < v->packets; i++) {
    if (i == v->sei_at) {
      uint8_t sei[128];
      queue_rtp(c, true, false, stamp, sei, format_sei(sei, c->camera, n, now_ns()));
    }
    queue_rtp(c, true, v->list[i].marker, stamp, v->list[i].data, v->list[i].size);
  }
  if (c->first_frame < 0) c->first_frame = n;
  if (v->key && c->first_key_frame < 0) c->first_key_frame = n;
  c->last_frame = n;
  pump(c);
}

static void send_audio(connection *c) {
  int64_t n = c->next_audio++;
  const packet *a = &media.audio[n % media.audio_frames];
  if (!room(c, a->size + 16, 1)) { c->dropped++; return; }
  queue_rtp(c, false, true, audio_stamp(c->camera, n), a->data, a->size);
  c->audio_sent++;
  pump(c);
}

// RFC 3550 §6.4.1, one for each stream, with a CNAME.
static void send_reports(connection *c) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t now = now_ns();
  for (int k = 0; k < 2; k++) {
    bool video = k == 0;
    if (!(video ? c->has_video : c->has_audio) || !room(c, 64, 1)) continue;
    uint8_t *p = c->queue + c->queue_end + 4;
    uint32_t ssrc = (video ? 0x56000000u : 0x41000000u) + (uint32_t)c->camera;
    double elapsed = (double)(now - origin_ns - phase_ns(c->camera)) / 1e9;
    uint32_t stamp = video ? video_stamp(c->camera, 0) + (uint32_t)(int64_t)(elapsed * 90000)
                           : audio_stamp(c->camera, 0) + (uint32_t)(int64_t)(elapsed * media.sample_rate);
    p[0] = 0x80; p[1] = 200; put_u16(p + 2, 6);
    put_u32(p + 4, ssrc);
    put_u32(p + 8, (uint32_t)wall.tv_sec + 2208988800u);
    put_u32(p + 12, (uint32_t)((double)wall.tv_nsec * 4.294967296));
    put_u32(p + 16, stamp);
    put_u32(p + 20, video ? c->video_packets : c->audio_packets);
    put_u32(p + 24, video ? c->video_octets : c->audio_octets);
    p[28] = 0x81; p[29] = 202; put_u16(p + 30, 3);
    put_u32(p + 32, ssrc);
    memcpy(p + 36, "\1\5bench\0", 8); // CNAME, 5 bytes, end of list
    queue_framed(c, (uint8_t)((video ? c->video_channel : c->audio_channel) + 1), 44);
  }
  pump(c);
}

static const char *header(const char *request, const char *name, char *value, size_t room) {
  size_t length = strlen(name);
  for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
    line += 2;
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') continue;
    const char *start = line + length + 1;
    while (*start == ' ') start++;
    size_t size = strcspn(start, "\r\n");
    if (size >= room) size = room - 1;
    memcpy(value, start, size);
    value[size] = 0;
    return value;
  }
  return NULL;
}

static void reply(connection *c, const char *request, const char *status, const char *headers, const char *body) {
  char cseq[32] = "0", text[8192];
  header(request, "CSeq", cseq, sizeof cseq);
  int size = snprintf(text, sizeof text, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s", status, cseq, headers);
  if (*body) size += snprintf(text + size, sizeof text - (size_t)size, "Content-Length: %zu\r\n", strlen(body));
  size += snprintf(text + size, sizeof text - (size_t)size, "\r\n%s", body);
  if (!room(c, (size_t)size, 1)) { hang_up(c); return; }
  memcpy(c->queue + c->queue_end, text, (size_t)size);
  c->lengths[c->lengths_end++] = (uint16_t)size;
  c->queue_end += (size_t)size;
  pump(c);
}

static void start_playing(connection *c) {
  int64_t now = now_ns();
  c->next_video = (now - origin_ns - phase_ns(c->camera)) / FRAME_NS + 1;
  if (c->next_video < 0) c->next_video = 0;
  c->next_audio = (int64_t)((double)(now - origin_ns - phase_ns(c->camera)) * media.sample_rate / 1e9 / AUDIO_SAMPLES) + 1;
  if (c->next_audio < 0) c->next_audio = 0;
  c->next_report_ns = now + 200000000LL;
  c->playing = true;
}

static void answer(connection *c, const char *request) {
  char headers[1024], value[512], session[64];
  char method[32] = "", url[512] = "";
  sscanf(request, "%31s %511s", method, url);
  const char *path = strstr(url, "/camera/");
  if (path) c->camera = atoi(path + 8);
  snprintf(session, sizeof session, "Session: %08x;timeout=60\r\n", 0xc0000000u + (unsigned)c->camera);
  if (!strcmp(method, "OPTIONS")) {
    reply(c, request, "200 OK", "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n", "");
  } else if (!path || c->camera < 0 || c->camera >= camera_count) {
    reply(c, request, "404 Not Found", "", "");
  } else if (!strcmp(method, "DESCRIBE")) {
    snprintf(headers, sizeof headers, "Content-Base: rtsp://%s:%d/camera/%d/\r\nContent-Type: application/sdp\r\n", host, port, c->camera);
    reply(c, request, "200 OK", headers, media.sdp);
  } else if (!strcmp(method, "SETUP")) {
    const char *channels = header(request, "Transport", value, sizeof value) ? strstr(value, "interleaved=") : NULL;
    if (!strstr(value, "RTP/AVP/TCP") || !channels) { reply(c, request, "461 Unsupported Transport", "", ""); return; }
    int first = atoi(channels + 12);
    bool video = strstr(path, "trackID=0") != NULL;
    if (video) { c->has_video = true; c->video_channel = (uint8_t)first; }
    else { c->has_audio = true; c->audio_channel = (uint8_t)first; }
    snprintf(headers, sizeof headers, "Transport: RTP/AVP/TCP;unicast;interleaved=%d-%d\r\n%s", first, first + 1, session);
    reply(c, request, "200 OK", headers, "");
  } else if (!strcmp(method, "PLAY")) {
    start_playing(c);
    snprintf(headers, sizeof headers,
             "%sRange: npt=0.000-\r\nRTP-Info: url=rtsp://%s:%d/camera/%d/trackID=0;seq=%u;rtptime=%u,"
             "url=rtsp://%s:%d/camera/%d/trackID=1;seq=%u;rtptime=%u\r\n",
             session, host, port, c->camera, c->video_sequence, video_stamp(c->camera, c->next_video), host, port, c->camera,
             c->audio_sequence, audio_stamp(c->camera, c->next_audio));
    reply(c, request, "200 OK", headers, "");
  } else if (!strcmp(method, "TEARDOWN")) {
    c->playing = false;
    c->closing = true;
    reply(c, request, "200 OK", session, "");
  } else {
    reply(c, request, "200 OK", session, "");
  }
}

// Takes requests, and the RTCP that a client sends between them, off the connection's input.
static void receive(connection *c) {
  ssize_t got = recv(c->fd, c->request + c->request_size, sizeof c->request - 1 - c->request_size, 0);
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) hang_up(c);
    return;
  }
  c->request_size += (size_t)got;
  while (c->fd >= 0 && c->request_size > 0) {
    size_t used;
    if (c->request[0] == '$') {
      if (c->request_size < 4) return;
      used = 4 + (size_t)(((uint8_t)c->request[2] << 8) | (uint8_t)c->request[3]);
      if (c->request_size < used) return;
    } else {
      char *end = memmem(c->request, c->request_size, "\r\n\r\n", 4);
      if (!end) return;
      char saved = end[2], length[16] = "0";
      end[2] = 0;
      header(c->request, "Content-Length", length, sizeof length);
      used = (size_t)(end + 4 - c->request) + (size_t)atoi(length);
      if (c->request_size < used) { end[2] = saved; return; }
      answer(c, c->request);
    }
    memmove(c->request, c->request + used, c->request_size - used);
    c->request_size -= used;
  }
}

// The counters of connections that are over make room for new ones.
static void forget_closed(void) {
  int kept = 0;
  for (int i = 0; i < connection_count; i++) {
    if (connections[i]->fd >= 0) connections[kept++] = connections[i];
    else free(connections[i]);
  }
  connection_count = kept;
}

static void accept_one(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  if (connection_count == MAX_CONNECTIONS) { close(fd); return; }
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  connection *c = calloc(1, sizeof *c);
  c->fd = fd;
  c->camera = -1;
  c->queue = malloc(2 * QUEUE_BYTES);
  c->first_frame = c->first_key_frame = c->last_frame = -1;
  c->video_sequence = (uint16_t)(connection_count * 4001);
  c->audio_sequence = (uint16_t)(connection_count * 2003);
  connections[connection_count++] = c;
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void print_stats(void) {
  for (int i = 0; i < connection_count; i++) {
    const connection *c = connections[i];
    if (c->first_frame < 0) continue;
    printf("{\"camera\":%d,\"firstFrame\":%lld,\"firstKeyFrame\":%lld,\"lastFrame\":%lld,\"audioFrames\":%lld,"
           "\"dropped\":%lld,\"queued\":%zu,\"bytes\":%lld,\"writes\":%lld,\"packets\":%u,\"open\":%s}\n",
           c->camera, (long long)c->first_frame, (long long)c->first_key_frame, (long long)c->last_frame,
           (long long)c->audio_sent, (long long)c->dropped, c->queue_end - c->queue_start, (long long)c->bytes,
           (long long)c->writes, c->video_packets + c->audio_packets, c->fd >= 0 ? "true" : "false");
  }
  printf("end\n");
}

static void command(void) {
  static char line[256];
  static size_t size;
  ssize_t got = read(0, line + size, sizeof line - 1 - size);
  if (got == 0) exit(0);
  if (got < 0) return;
  size += (size_t)got;
  line[size] = 0;
  char *end;
  while ((end = strchr(line, '\n'))) {
    *end = 0;
    if (!strcmp(line, "quiet")) { quiet = true; printf("quiet\n"); }
    if (!strcmp(line, "stats")) print_stats();
    size -= (size_t)(end + 1 - line);
    memmove(line, end + 1, size + 1);
  }
}

// Sends what is due; returns when the next thing is.
static int64_t run_due(void) {
  int64_t now = now_ns(), next = now + 100000000LL;
  for (int i = 0; i < connection_count; i++) {
    connection *c = connections[i];
    if (c->fd < 0) continue;
    if (write_mode == WRITE_WIRE && c->queue_start < c->queue_end && !c->wants_write) pump(c);
    while (c->playing && !quiet) {
      int64_t video = c->has_video ? video_due(c->camera, c->next_video) : INT64_MAX;
      int64_t audio = c->has_audio ? audio_due(c->camera, c->next_audio) : INT64_MAX;
      int64_t due = video < audio ? video : audio;
      if (c->next_report_ns < due) due = c->next_report_ns;
      if (due > now) {
        if (due < next) next = due;
        break;
      }
      if (due == c->next_report_ns) { send_reports(c); c->next_report_ns += REPORT_NS; }
      else if (due == video) send_picture(c);
      else send_audio(c);
    }
    bool paced = write_mode == WRITE_WIRE && c->fd >= 0 && c->queue_start < c->queue_end && !c->wants_write;
    if (paced && c->wire_free_ns < next) next = c->wire_free_ns;
  }
  return next;
}

int main(int argc, char **argv) {
  if (argc < 5 || argc > 7) {
    fprintf(stderr, "usage: sender PORT MEDIA CAMERAS frame|packet|wire [ADDRESS [SPREAD_MS]]\n");
    return 2;
  }
  if (argc >= 6) host = argv[5];
  if (argc == 7) spread_ns = atoll(argv[6]) * 1000000LL;
  load_media(argv[2]);
  camera_count = atoi(argv[3]);
  write_mode = !strcmp(argv[4], "frame") ? WRITE_FRAME : !strcmp(argv[4], "wire") ? WRITE_WIRE : WRITE_PACKET;
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGPIPE, SIG_IGN);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = inet_addr(host) };
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 256)) die("listen");
  socklen_t length = sizeof address;
  getsockname(listener, (struct sockaddr *)&address, &length);
  port = ntohs(address.sin_port);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = &listener };
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
  static int standard_input;
  event.data.ptr = &standard_input;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, 0, &event);
  origin_ns = now_ns();
  printf("listening %d\n", port);
  for (;;) {
    if (connection_count > MAX_CONNECTIONS - SPARE_CONNECTIONS) forget_closed();
    int64_t wait = run_due() - now_ns();
    if (wait < 0) wait = 0;
    struct timespec timeout = { wait / 1000000000LL, wait % 1000000000LL };
    struct epoll_event events[64];
    int count = epoll_pwait2(epoll_fd, events, 64, &timeout, NULL);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr == &listener) accept_one(listener);
      else if (events[i].data.ptr == &standard_input) command();
      else {
        connection *c = events[i].data.ptr;
        if (c->fd >= 0 && (events[i].events & EPOLLOUT)) pump(c);
        if (c->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive(c);
      }
    }
  }
}
