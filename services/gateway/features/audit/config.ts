import { type ConfigBlock, key, type Rule, requires, requiresTop, uniqueNames } from '@plat/config'
import { reasonOf } from '@plat/core'
import { keyFilePath } from '@plat/keys'
import Type from 'typebox'

const MIB = 1024 * 1024

/** One receiver of audit records. */
const sink = Type.Object({
  name: key.needed('Unique name.', '^[a-z0-9][a-z0-9-]{0,39}$'),
  type: Type.Enum(['syslog', 'http', 'jsonl', 'sentinel', 'chronicle', 'cloudwatch', 'splunk-hec'], {
    description: 'Protocol.',
  }),
  address: key.text('Of `syslog`: `tcp://host:port` or `tls://host:port`.', '', '^(?:(?:tcp|tls)://\\S+:\\d+)?$'),
  url: key.url('Where records go; no credentials in it.'),
  path: key.text('File of `jsonl`.'),
  format: Type.Optional(
    Type.Enum(['json', 'rfc5424-json', 'cef', 'ocsf'], {
      description: 'Default rfc5424-json for syslog, ocsf for http, json for jsonl.',
    }),
  ),
  caFile: key.file('Authorities of the receiver.'),
  certFile: key.file('With `keyFile`: mutual TLS.'),
  keyFile: key.file('With `certFile`: mutual TLS.'),
  serverName: key.text('Name in the certificate of the receiver.'),
  headersFile: key.file('`Name: value` lines.'),
  batchSize: key.whole('Records of one delivery.', 100, 1),
  pollIntervalMillis: key.millis('Time between two deliveries.', 1000),
  facility: key.whole('Of syslog.', 13, 0, 23),
  sdId: key.text('Of syslog.', 'plat@32473'),
  timeoutSeconds: key.seconds('Time for one delivery.', 15),
  tokenFile: key.file('Token of the receiver.'),
  awsCredentialsDir: key.text('Folder of AWS credentials.'),
  credentials: Type.Optional(Type.Enum(['aws', 'azure', 'gcp'], { description: 'Credentials of `cloudCredentials`.' })),
  dcrImmutableId: key.text('Of `sentinel`.'),
  streamName: key.text('Of `sentinel`.'),
  chronicleMode: key.choice(['logs', 'udm'], 'logs', 'Of `chronicle`.'),
  logType: key.text('Of `chronicle`.'),
  region: key.text('Of `chronicle` and `cloudwatch`.'),
  logGroup: key.text('Of `cloudwatch`.'),
  logStream: key.text('Of `cloudwatch`.'),
  index: key.text('Of `splunk-hec`.'),
  source: key.text('Of `splunk-hec`.'),
  sourceType: key.text('Of `splunk-hec`.', 'plat:audit'),
  maxBatchBytes: Type.Optional(Type.Integer({ minimum: 1, description: 'Bytes of one delivery.' })),
  deadLetterPath: key.text('Default `<cursor dir>/<name>.deadletter.jsonl`.'),
  deadLetterMaxBytes: key.whole('When full, delivery stops instead of dropping.', 64 * MIB, 1),
})

/** A key URI of a scheme that is not built, or of none, is refused before anything starts. */
const keysOpen: Rule = (block) =>
  (['auditCheckpointKey', 'auditCheckpointPQKey'] as const).flatMap((path) => {
    const uri = block[path]
    if (typeof uri !== 'string' || uri === '') return []
    try {
      keyFilePath(uri)
      return []
    } catch (error) {
      return [{ path, message: reasonOf(error), severity: 'error' as const }]
    }
  })

/** Audit ledger (document 3). */
export const auditBlock = {
  path: '',
  feature: 'audit',
  built: true,
  schema: Type.Object({
    auditPath: Type.String({ minLength: 1, description: 'JSONL hash-chained ledger.' }),
    auditFailurePolicy: Type.Enum(['open', 'closed'], {
      default: 'open',
      description:
        '`open`: failed append logged, call proceeds; `closed`: intent record must be durable before an allowed call is forwarded.',
    }),
    auditCheckpointKey: key.text(
      'Key URI (`file:///`, `kms://`, `azurekv://`, `pkcs11:`) signing checkpoints (JWS; Ed25519, P-256 or RSA); public JWKS at `/v1/audit/jwks`.',
    ),
    auditCheckpointPQKey: key.text('ML-DSA-44/65/87 key URI; hybrid checkpoints; requires `auditCheckpointKey`.'),
    auditCheckpointIntervalSeconds: key.seconds('Checkpoint interval.', 60),
    auditCheckpointEvery: key.whole('Also checkpoint after this many records; cadence of HMAC checkpoints.', 1000, 1),
    auditCheckpointPublicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
      default: [],
      description: 'Retired public keys still published.',
    }),
    auditSinks: Type.Array(sink, { default: [], built: false, description: 'SIEM streaming.' }),
    auditAcceptDivergedMirror: Type.Boolean({
      default: false,
      built: false,
      description: 'Let a replica with a diverged local mirror rebuild; default is refuse to start.',
    }),
  }),
  rules: [
    requires(
      '',
      ['auditCheckpointKey'],
      ({ auditCheckpointPQKey }) => auditCheckpointPQKey !== '',
      'with auditCheckpointPQKey',
    ),
    keysOpen,
    uniqueNames('auditSinks'),
  ],
} satisfies ConfigBlock

/** `transparencyLog` (document 3): anchors of ledger heads. */
export const transparencyLogBlock = {
  path: 'transparencyLog',
  feature: 'audit',
  built: false,
  schema: Type.Object({
    enabled: Type.Boolean({ default: false, description: 'Needs `url` and `auditCheckpointKey`.' }),
    url: Type.String({ default: '', format: 'http-url', description: 'Base URL of the log.' }),
    api: Type.Enum(['v1', 'v2'], { default: 'v1', description: 'Protocol of the log.' }),
    intervalSeconds: Type.Integer({ default: 0, minimum: 0, description: '0 means on demand.' }),
    publicKeyFiles: Type.Array(Type.String(), { default: [], description: 'Public keys of the log.' }),
    timeoutSeconds: Type.Integer({ default: 30, minimum: 1, description: 'Per request to the log.' }),
  }),
  rules: [
    requires('transparencyLog', ['url'], ({ enabled }) => enabled === true, 'with transparencyLog.enabled'),
    requiresTop('auditCheckpointKey', ({ enabled }) => enabled === true, 'with transparencyLog.enabled'),
  ],
} satisfies ConfigBlock
