import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

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
    auditCheckpointKey: Type.String({
      default: '',
      built: false,
      description:
        'Key URI (`file:///`, `kms://`, `azurekv://`, `pkcs11:`) signing checkpoints (JWS; Ed25519, P-256 or RSA); public JWKS at `/v1/audit/jwks`.',
    }),
    auditCheckpointPQKey: Type.String({
      default: '',
      built: false,
      description: 'ML-DSA-44/65/87 key URI; hybrid checkpoints; requires `auditCheckpointKey`.',
    }),
    auditCheckpointIntervalSeconds: Type.Integer({
      default: 60,
      minimum: 1,
      built: false,
      description: 'Checkpoint interval.',
    }),
    auditCheckpointEvery: Type.Integer({
      default: 1000,
      minimum: 1,
      built: false,
      description: 'Also checkpoint after this many records; cadence of HMAC checkpoints.',
    }),
    auditCheckpointPublicKeyFiles: Type.Array(Type.String(), {
      default: [],
      built: false,
      description: 'Retired public keys still published.',
    }),
    auditSinks: Type.Array(Type.Unknown(), { default: [], built: false, description: 'SIEM streaming.' }),
    auditAcceptDivergedMirror: Type.Boolean({
      default: false,
      built: false,
      description: 'Let a replica with a diverged local mirror rebuild; default is refuse to start.',
    }),
  }),
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
} satisfies ConfigBlock
