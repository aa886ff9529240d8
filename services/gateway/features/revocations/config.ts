import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Revocations (document 3). The list in memory needs no key; everything that reads or keeps one is not built. */
export const revocationsBlock = {
  path: '',
  feature: 'revocations',
  built: true,
  schema: Type.Object({
    revocationsFile: Type.String({
      default: '',
      built: false,
      description: 'List file; when set, a missing, unreadable or invalid file denies every call.',
    }),
    revocationsRecheckMillis: Type.Integer({
      default: 250,
      minimum: -1,
      built: false,
      description: 'Max staleness; -1 leaves reload to `policyReloadSeconds`.',
    }),
    revocationsJournalPath: Type.String({
      default: '',
      built: false,
      description: 'Break-glass revocations (`POST /v1/revocations`); `<auditPath>.revocations.jsonl` when empty.',
    }),
  }),
} satisfies ConfigBlock

/** `revocationMirror` (document 3). */
export const revocationMirrorBlock = {
  path: 'revocationMirror',
  feature: 'revocations',
  built: false,
  schema: Type.Object({
    enabled: Type.Boolean({
      default: false,
      description: 'Mirror break-glass revocations to AgentRevocation objects.',
    }),
    namespace: Type.String({ default: 'plat-system', description: 'Namespace for cluster-wide entries.' }),
  }),
} satisfies ConfigBlock
