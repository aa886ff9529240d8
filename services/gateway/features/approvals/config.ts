import { type ConfigBlock, key, LONGEST_SECONDS } from '@plat/config'
import Type from 'typebox'

/** Approvals (document 3). */
export const approvalsBlock = {
  path: '',
  feature: 'approvals',
  built: true,
  schema: Type.Object({
    approvalTimeoutSeconds: Type.Integer({
      default: 300,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'Lifetime of a pending approval.',
    }),
    approvalStorePath: Type.String({ default: '', description: 'Approvals journal; memory when empty.' }),
  }),
} satisfies ConfigBlock

/** `approvalPreview` (document 3): what approvers see of the arguments. */
export const approvalPreviewBlock = {
  path: 'approvalPreview',
  feature: 'approvals',
  built: true,
  schema: Type.Object({
    mode: Type.Enum(['none', 'hash', 'redacted', 'full'], {
      default: 'redacted',
      description:
        '`none`, `hash`, `redacted` (what data-loss prevention leaves; without it shape and sizes), `full` (raw arguments, which are stored in this mode only).',
    }),
    maxBytes: Type.Integer({ default: 4096, minimum: 1, maximum: 65_536, description: 'Preview cap.' }),
  }),
} satisfies ConfigBlock

/** Who must approve. */
const rule = Type.Object({
  minApprovers: key.whole('Approvers needed.', 1, 0, 10),
  approverGroups: key.texts('Groups of which approvers must be.'),
  userConfirmation: Type.Optional(Type.Enum(['ciba'], { description: 'The delegating user confirms.' })),
})

/** `approvalQuorum` (document 3): one approver decides; everything else is not built. */
export const approvalQuorumBlock = {
  path: 'approvalQuorum',
  feature: 'approvals',
  built: true,
  schema: Type.Object({
    default: Type.Object(
      {
        minApprovers: Type.Integer({
          default: 1,
          minimum: 0,
          maximum: 10,
          built: false,
          description: 'Approvers needed.',
        }),
        approverGroups: Type.Array(Type.String(), {
          default: [],
          built: false,
          description: 'Groups of which approvers must be.',
        }),
        userConfirmation: Type.String({
          default: '',
          built: false,
          description: '`ciba`: the delegating user confirms.',
        }),
      },
      { default: {}, description: 'Rule for every `require_approval`.' },
    ),
    rules: Type.Record(Type.String({ pattern: '^[^/]+/[^/]+$' }), rule, {
      default: {},
      built: false,
      description: 'Keys `<policy>/<rule>`, `<policy>/*`, `*/<rule>` (globs).',
    }),
  }),
} satisfies ConfigBlock
