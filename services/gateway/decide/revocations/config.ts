import { defineBlock, LONGEST_SECONDS, type RuleOf } from '@plat/config'
import Type from 'typebox'

const schema = Type.Object({
  revocationsFile: Type.String({
    default: '',
    file: 'fails closed',
    description: 'List file; when set, a missing, unreadable or invalid file denies every call.',
  }),
  revocationsRecheckMillis: Type.Integer({
    default: 250,
    minimum: -1,
    maximum: LONGEST_SECONDS * 1000,
    description: 'Max staleness; -1 leaves reload to `policyReloadSeconds`.',
  }),
  revocationsJournalPath: Type.String({
    default: '',
    description: 'Break-glass revocations (`POST /v1/revocations`); `<auditPath>.revocations.jsonl` when empty.',
  }),
})

const someInterval: RuleOf<typeof schema> = ({ revocationsRecheckMillis }) =>
  revocationsRecheckMillis === 0
    ? [
        {
          path: 'revocationsRecheckMillis',
          message: 'must be at least 1, or -1 for policyReloadSeconds',
          severity: 'error',
        },
      ]
    : []

/** Revocations (docs/spec/gateway.md). */
export const revocationsBlock = defineBlock({
  path: '',
  feature: 'revocations',
  schema,
  rules: [someInterval],
})

/** `revocationMirror` (docs/spec/gateway.md). */
export const revocationMirrorBlock = defineBlock({
  path: 'revocationMirror',
  feature: 'mirror',
  schema: Type.Object({
    enabled: Type.Boolean({
      default: false,
      description: 'Mirror break-glass revocations to AgentRevocation objects.',
    }),
    namespace: Type.String({
      default: 'plat-system',
      pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
      description: 'Namespace for cluster-wide entries.',
    }),
  }),
})
