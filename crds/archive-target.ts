// The ArchiveTarget resource: a place in object storage to which recorders copy footage.

import { z } from 'zod';
import { API_VERSION } from './names.ts';
import { parseResource, type PartlyRead } from './parse.ts';
import {
  conditions,
  formed,
  integer,
  LABEL_RULE,
  listSet,
  metadata,
  reference,
  statusObject,
  subdomain,
  withRules,
  type Immutable,
} from './schema-parts.ts';

/** How many targets a recorder copies to. */
export const MAX_TARGETS = 4;

/** What is copied: of a camera, or of all cameras of a pool that say nothing. */
export const copies = () =>
  withRules(
    z.object({
      targets: listSet(subdomain(32), MAX_TARGETS).describe(
        'Names of ArchiveTargets in this namespace; []: nothing is copied.',
      ),
      afterSeconds: integer(0, 3_650 * 86_400)
        .default(0)
        .describe('Age at which a file is copied.'),
      keepSeconds: integer(3_600, 36_525 * 86_400)
        .optional()
        .describe(
          'A copy that is older is removed. Default: maxAgeSeconds of the camera or the pool; without one, copies are never removed.',
        ),
    }),
    {
      rule: '!has(self.keepSeconds) || self.keepSeconds >= self.afterSeconds',
      message: 'must not be less than afterSeconds',
      fieldPath: '.keepSeconds',
    },
  );

const spec = z.object({
  endpoint: formed(
    z.string().max(270),
    /^https?:\/\/([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$/,
    'must be an address without a path, such as https://s3.eu-central-1.amazonaws.com',
  ).describe('Address of the S3 service. Buckets are addressed by path.'),
  region: z.string().min(1).max(64).default('us-east-1').describe('Region for which requests are signed.'),
  bucket: formed(z.string().max(63), /^[a-z0-9][a-z0-9.-]+[a-z0-9]$/, 'must be the name of a bucket').describe(
    'The bucket, which must exist.',
  ),
  prefix: withRules(
    formed(z.string().max(200), /^[A-Za-z0-9._/-]+$/, 'must have only letters, digits, ".", "_", "-" and "/"'),
    { rule: 'self == oldSelf', message: 'is immutable: copies would be left behind; make a new ArchiveTarget instead' },
  )
    .optional()
    .describe(
      'Where in the bucket. Default: NAMESPACE/POOL of each pool. A prefix belongs to the pool that used it first; others are refused.',
    ),
  credentialsSecretRef: reference().describe(
    'A Secret with the keys accessKeyId and secretAccessKey. Recorders read it again when it changes.',
  ),
  ca: formed(
    z.string().max(65_536),
    /-----BEGIN CERTIFICATE-----/,
    'must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----',
  )
    .optional()
    .describe("PEM certificates of the authorities to trust for the service, instead of the system's."),
  objectLock: z
    .object({
      mode: z
        .enum(['Governance', 'Compliance'])
        .describe('Governance: users with a special permission can end a lock. Compliance: nobody can.'),
      forSeconds: integer(3_600, 36_525 * 86_400).describe(
        'Nobody can remove a copy until it is this old. Not longer than keepSeconds and maxAgeSeconds.',
      ),
    })
    .optional()
    .describe('Locks copies, in a bucket with object lock.'),
  serverSideEncryption: z
    .enum(['Service', 'KeyManagement'])
    .optional()
    .describe(
      'The service encrypts what it stores, with a key of its own (Service, SSE-S3) or of its key management (KeyManagement, SSE-KMS). Without it: as the bucket is configured.',
    ),
  maxBitrate: integer(1, 10_000).optional().describe('The most megabits a second at which one node copies.'),
  hours: withRules(
    formed(
      z.string().max(11),
      /^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$/,
      'must be hours such as 22:00-06:00',
    ),
    {
      rule: "self.split('-').size() != 2 || self.split('-')[0] != self.split('-')[1]",
      message: 'must end at another time than it begins',
    },
  )
    .optional()
    .describe('Copy only at these hours, by the clock of the nodes, such as 22:00-06:00.'),
});

export const archiveTargetSchema = withRules(
  statusObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('ArchiveTarget'),
    metadata,
    spec,
    status: statusObject({
      observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
      conditions: conditions().optional(),
    }).optional(),
  }),
  LABEL_RULE,
);

export type ArchiveTarget = Immutable<z.output<typeof archiveTargetSchema>> & PartlyRead;

/** Throws ResourceError. */
export const parseArchiveTarget = (value: unknown): ArchiveTarget =>
  // Nothing is copied to a place of which a part is not understood.
  parseResource('ArchiveTarget', archiveTargetSchema, value);
