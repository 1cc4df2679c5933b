// A real Prometheus and real recorders with real faults: what each alert of recorders says when its fault is there, that
// it is silent again after, and that every question of the dashboards has an answer.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatPublicKey, signLicense } from '../../recorder/license/statement.ts';
import { WebSocket } from 'ws';
import { metricsOf, seriesOf } from '../../monitoring/metrics.ts';
import { startCamera } from '../camera/camera.ts';
import { selfSignedCertificate } from '../camera/certificate.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { Mount, Stranger } from '../support/mount.ts';
import { Postgres, postgresMissing } from '../support/postgres.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { Prometheus } from './prometheus.ts';
import { unanswered } from './panels.ts';
import { prometheusMissing } from './rule-files.ts';

const skip = prometheusMissing() || postgresMissing();
const DAY_MS = 86_400_000;

const addressOf = (recorder: RecorderProcess): string => new URL(recorder.metricsUrl).host;

test('recorders: every alert in its fault and after it, every panel with data', { skip }, async (t) => {
  const directory = workspace(t);
  await using prometheus = await Prometheus.start();
  await prometheus.fires('KubeNvrRecordersAbsent');

  // What the recorders have around them.
  const postgres = await Postgres.start(t);
  const ffmpeg = join(directory, 'ffmpeg');
  writeFileSync(ffmpeg, '#!/bin/sh\n[ "$1" = -version ] || exec sleep 600\n');
  chmodSync(ffmpeg, 0o755);
  const video = videoTrack(await videoMedia('h264'));
  const audio = audioTrack(await audioMedia('aac'));
  const strange = { ...audio, sdp: audio.sdp.map((line) => line.replace(/mpeg4-generic/i, 'X-STRANGE')) };
  const tracks = [video, audio];
  await using gate = await startCamera({ pace: 'realtime', tracks });
  let yard = await startCamera({ pace: 'realtime', tracks: [video, strange] });
  const yardPort = Number(new URL(yard.url).port);
  t.after(() => yard.close());
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const licence = (expiresInMs: number): string =>
    signLicense(
      { holder: 'Example', cameras: 4, expires: new Date(Date.now() + expiresInMs).toISOString().slice(0, 10) },
      privateKey,
    );
  const tls = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const useCertificate = (validForMs: number): void => {
    const { cert, key } = selfSignedCertificate('rack-2', validForMs);
    writeFileSync(tls.key, key, { mode: 0o600 });
    writeFileSync(tls.certificate, cert);
  };
  const license = join(directory, 'recorder.lic');
  const [redisPort = 0] = await freePorts(1);
  let redis = startRedis(redisPort, directory);
  t.after(() => redis[Symbol.asyncDispose]());
  useCertificate(DAY_MS);
  writeFileSync(license, licence(3 * DAY_MS));
  const disk = Mount.make(t, 'tmpfs', 24 * 1024 * 1024);
  if (!disk) return;

  // Two recorders: one with cameras and a database, one with a certificate, a licence and a small disk.
  const where = (name: string): string => {
    const path = join(directory, name);
    mkdirSync(path);
    return path;
  };
  await using first = await RecorderProcess.start({
    directory: where('first'),
    config: {
      nodeName: 'rack-1',
      database: { url: postgres.url() },
      ffmpeg: { path: ffmpeg },
      redis: { url: `redis://127.0.0.1:${redisPort}` },
      archive: { segmentDuration: '2s', syncInterval: '1s', retention: { maxSize: '300KiB' } },
      cameras: [
        { id: 'gate', source: gate.url, transport: 'tcp' },
        { id: 'yard', source: yard.url, transport: 'tcp' },
      ],
    },
  });
  let second = await RecorderProcess.start({
    directory: where('second'),
    config: {
      nodeName: 'rack-2',
      tls,
      license: { file: license, publicKey: formatPublicKey(publicKey), required: true },
      record_path: disk.path,
      archive: { segmentDuration: '2s', syncInterval: '1s' },
      cameras: [{ id: 'dock', source: gate.url, transport: 'tcp' }],
    },
    waitUntilReady: false,
  });
  t.after(() => second[Symbol.asyncDispose]());
  await until('the second recorder answers', async () => (await fetch(second.metricsUrl)).ok);
  await first.untilRecording('gate', 'yard');
  prometheus.scrape('kube-nvr-recorder', { 'rack-1': addressOf(first), 'rack-2': addressOf(second) });
  await prometheus.clears('KubeNvrRecordersAbsent');
  const at = (node: string, more: Readonly<Record<string, string>> = {}) => ({ node, ...more });
  const post = async (path: string, method = 'POST'): Promise<Record<string, unknown>> => {
    const answer = await fetch(first.url + path, { method });
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  };

  // Somebody looks and plays meanwhile.
  const viewer = new WebSocket(`${first.url.replace('http', 'ws')}/websocket/gate`);
  t.after(() => viewer.terminate());
  const [file] = await until('there is a file', async () => {
    const files = await first.files();
    return files.some((name) => name.includes('_gate_')) && files.filter((name) => name.includes('_gate_'));
  });
  await (await fetch(`${first.playbackUrl}/${file}`)).arrayBuffer();

  await Promise.all([
    // A camera that is switched off, and on again.
    (async () => {
      await yard.close();
      const silent = await prometheus.fires('KubeNvrCameraSilent', at('rack-1', { camera: 'yard' }));
      assert.equal(silent.annotations['summary'], 'No video of camera yard is being written');
      assert.match(silent.annotations['description'] ?? '', /^Camera yard on rack-1 should be recorded/);
      const gaps = await prometheus.fires('KubeNvrGapSecondsRising', at('rack-1', { camera: 'yard' }));
      assert.match(
        gaps.annotations['summary'] ?? '',
        /^Footage of camera yard has gaps \((camera-unreachable|connection-lost)\)$/,
      );
      yard = await startCamera({ pace: 'realtime', tracks: [video, strange], port: yardPort });
      await prometheus.clears('KubeNvrCameraSilent', at('rack-1'));
      await prometheus.clears('KubeNvrGapSecondsRising', at('rack-1', { camera: 'yard' }));
    })(),

    // A database that refuses rows, does not take them, is away.
    (async () => {
      await postgres.query(`ALTER TABLE recordings ADD CONSTRAINT strict CHECK (camera_id <> 'gate') NOT VALID`);
      await prometheus.fires('KubeNvrDatabaseRejectsRows', at('rack-1'));
      await postgres.query('ALTER TABLE recordings DROP CONSTRAINT strict');
      await prometheus.clears('KubeNvrDatabaseRejectsRows', at('rack-1'));
      await postgres.query(`
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON recordings FOR EACH ROW EXECUTE FUNCTION slow()`);
      await prometheus.fires('KubeNvrDatabaseBehind', at('rack-1'));
      await postgres.query('DROP TRIGGER slow ON recordings');
      await prometheus.clears('KubeNvrDatabaseBehind', at('rack-1'));
      await postgres.stop('immediate');
      await prometheus.fires('KubeNvrDatabaseUnreachable', at('rack-1'));
      await postgres.start();
      await prometheus.clears('KubeNvrDatabaseUnreachable', at('rack-1'));
    })(),

    // Exports that stand still, as their ffmpeg does; then they cannot be had, because Redis is away.
    (async () => {
      const now = Math.floor(Date.now() / 1000);
      await post(`/api/archive/gate/export?from=${now - 3}&to=${now}`);
      const lapse = await post(`/api/archive/gate/timelapse?from=${now - 3}&to=${now}&speed=2`);
      await prometheus.fires('KubeNvrJobsStuck', at('rack-1'));
      await post(`/api/archive/jobs/${String(lapse['job_id'])}`, 'DELETE');
      await prometheus.clears('KubeNvrJobsStuck', at('rack-1'));
      await redis.stop();
      const refused = await prometheus.fires('KubeNvrJobsUnavailable', at('rack-1'));
      assert.equal(refused.annotations['summary'], 'Exports on rack-1 are refused');
      redis = startRedis(redisPort, directory);
      await prometheus.clears('KubeNvrJobsUnavailable', at('rack-1'));
    })(),

    // Protected footage beyond maxSize.
    (async () => {
      const now = Math.floor(Date.now() / 1000);
      const { id } = (await post(`/api/archive/gate/protect?from=${now - 60}&to=${now + 600}`)) as { id: string };
      await prometheus.fires('KubeNvrProtectedOverQuota', at('rack-1', { scope: 'node' }));
      await post(`/api/archive/protections/${id}`, 'DELETE');
      await prometheus.clears('KubeNvrProtectedOverQuota', at('rack-1'));
    })(),

    // Certificate and licence that end soon; one that is not good.
    (async () => {
      await prometheus.fires('KubeNvrCertificateExpiring', at('rack-2'));
      useCertificate(90 * DAY_MS);
      await prometheus.clears('KubeNvrCertificateExpiring', at('rack-2'));
      await prometheus.fires('KubeNvrLicenseExpiring', at('rack-2'));
      writeFileSync(license, licence(300 * DAY_MS));
      await prometheus.clears('KubeNvrLicenseExpiring', at('rack-2'));
      writeFileSync(license, 'none');
      await prometheus.fires('KubeNvrLicenseInvalid', at('rack-2'));
      writeFileSync(license, licence(300 * DAY_MS));
      await prometheus.clears('KubeNvrLicenseInvalid', at('rack-2'));
    })(),

    // A disk that somebody else fills; one that is pulled.
    (async () => {
      const stranger = new Stranger(disk);
      await until(
        'there is room to lose',
        async () => (await prometheus.numbersOf('kube_nvr_retention_room_bytes{node="rack-2"}')) > 5,
      );
      stranger.fillTo(0);
      const refilled = setInterval(() => stranger.fillTo(0), 200);
      t.after(() => clearInterval(refilled));
      await prometheus.fires('KubeNvrDiskFillsUp', at('rack-2'));
      await prometheus.fires('KubeNvrDiskExhausted', at('rack-2'));
      clearInterval(refilled);
      stranger.leave();
      await prometheus.clears('KubeNvrDiskExhausted', at('rack-2'));
      await prometheus.clears('KubeNvrDiskFillsUp', at('rack-2'));
      const marker = join(disk.path, '.kube-nvr/archive.json');
      renameSync(marker, `${marker}.away`);
      await prometheus.fires('KubeNvrWrongDisk', at('rack-2', { cause: 'archive-missing' }));
      renameSync(`${marker}.away`, marker);
      await prometheus.clears('KubeNvrWrongDisk', at('rack-2'));
      second.child.signal('SIGKILL');
      await prometheus.fires('KubeNvrRecorderDown', at('rack-2'));
    })(),
  ]);
  second = await second.restart({ waitUntilReady: false });
  await prometheus.clears('KubeNvrRecorderDown');

  assert.deepEqual(await unanswered(prometheus, 'recorder'), []);

  // Nothing is scraped that docs/metrics.md does not have, and nothing of it is missing.
  const known = new Set(metricsOf('recorder').flatMap((metric) => [...seriesOf(metric).keys()]));
  const seen = (await prometheus.names('kube-nvr-recorder')).filter((name) => name.startsWith('kube_nvr_'));
  assert.deepEqual(
    seen.filter((name) => !known.has(name)),
    [],
  );
});
