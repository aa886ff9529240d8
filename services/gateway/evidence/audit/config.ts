import { defineBlock, key, requires } from '@plat/config'
import Type from 'typebox'
import { keyProblems } from '../../call/key-problems.ts'

/** Audit ledger (docs/spec/gateway.md). */
export const auditBlock = defineBlock({
  path: '',
  feature: 'audit',
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
    auditSegmentBytes: key.whole(
      'Size at which the file at `auditPath` is sealed as a segment and a new one begins, in bytes.',
      256 * 1024 * 1024,
      64 * 1024,
    ),
    auditSegmentSeconds: key.whole('Age at which it is sealed at any size; 0: never.', 0),
    auditVerifyBytesPerSecond: key.whole(
      'Rate at which sealed segments are verified in the background after a start; 0: they are not.',
      32 * 1024 * 1024,
    ),
    auditAcceptDivergedMirror: Type.Boolean({
      default: false,
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
    ({ auditCheckpointKey = '', auditCheckpointPQKey = '' }) => [
      ...keyProblems('auditCheckpointKey', auditCheckpointKey, 'sign'),
      ...keyProblems('auditCheckpointPQKey', auditCheckpointPQKey, 'ML-DSA'),
    ],
  ],
})
