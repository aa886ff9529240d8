import { defineBlock, key, LONGEST_SECONDS, memberPath, type Problem, type RuleOf, type Unfinished } from '@plat/config'
import { isObject } from '@plat/core'
import Type, { type Static } from 'typebox'

/** Approvals (docs/spec/gateway.md). */
export const approvalsBlock = defineBlock({
  path: '',
  feature: 'approvals',
  schema: Type.Object({
    approvalTimeoutSeconds: Type.Integer({
      default: 300,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'Lifetime of a pending approval.',
    }),
    approvalAnswerAfterSeconds: Type.Integer({
      default: 4,
      minimum: 0,
      maximum: LONGEST_SECONDS,
      description:
        'A `tools/call` that waits longer for an approval is answered with `approval_pending`, before its client gives up; the repeated call gets the outcome. Not for clients that requested progress notifications. An Agent may say otherwise.',
    }),
    approvalStorePath: Type.String({ default: '', description: 'Approvals journal; memory when empty.' }),
  }),
})

/** `approvalPreview` (docs/spec/gateway.md): what approvers see of the arguments. */
export const approvalPreviewBlock = defineBlock({
  path: 'approvalPreview',
  feature: 'approvals',
  schema: Type.Object({
    mode: Type.Enum(['none', 'hash', 'redacted', 'full'], {
      default: 'redacted',
      description:
        '`none`, `hash`, `redacted` (by data-loss prevention, or by all detectors where no profile applies), `full` (raw arguments; only this mode stores them).',
    }),
    maxBytes: Type.Integer({
      default: 4096,
      minimum: 1,
      maximum: 65_536,
      description: 'Preview cap; a call with longer arguments cannot be approved in a chat.',
    }),
    maxStoredBytes: Type.Integer({
      default: 1_048_576,
      minimum: 0,
      maximum: 4_194_304,
      description:
        'Longest arguments that are stored whole beside a truncated preview, until the approval is decided: approvers fetch them. 0: none are.',
    }),
  }),
})

const USER_CONFIRMATION = ['ciba'] as const

/** Required approvers. */
const quorum = {
  minApprovers: key.whole('Distinct people who must approve; 0 only with `userConfirmation`.', 1, 0, 10),
  approverGroups: key.texts('Each approver must be in one of these groups; any group when empty.'),
  userConfirmation: Type.Optional(
    Type.Enum(USER_CONFIRMATION, {
      description: 'The user of the session must confirm as well, through block `ciba`.',
    }),
  ),
}

const quorumSchema = Type.Object({
  default: Type.Object(quorum, {
    default: {},
    description: 'For each `require_approval` that no entry of `rules` matches.',
  }),
  rules: Type.Record(Type.String({ pattern: '^([^/]+/)?[^/]+/[^/]+$' }), Type.Object(quorum), {
    default: {},
    description:
      'By `<policy>/<rule>`, `<policy>/*` or `*/<rule>` (globs; the policy may be written `<namespace>/<name>`); the most exact key applies.',
  }),
})

/** Reports quorums that no one could fill. */
const quorumsCanBeFilled: RuleOf<typeof quorumSchema> = (block, { ciba }) => {
  const rules = Object.entries(block.rules ?? {})
  const all = [
    ['approvalQuorum.default', block.default] as const,
    ...rules.map(([name, rule]) => [memberPath('approvalQuorum.rules', name), rule] as const),
  ]
  const canPromptUsers = isObject(ciba) && ciba.enabled === true
  return all.flatMap(([path, rule = {}]) => faultsOf(path, rule, canPromptUsers))
}

type Quorum = NonNullable<Unfinished<ApprovalQuorumConfig>['default']>

function faultsOf(path: string, rule: Quorum, canPromptUsers: boolean): Problem[] {
  if (rule.userConfirmation !== undefined) {
    const message = 'needs ciba.enabled: users cannot be prompted without it'
    return canPromptUsers ? [] : [{ path: `${path}.userConfirmation`, message, severity: 'error' }]
  }
  if (rule.minApprovers !== 0) return []
  return [{ path: `${path}.minApprovers`, message: '0 needs userConfirmation: somebody must agree', severity: 'error' }]
}

/** `approvalQuorum` (docs/spec/gateway.md): minimum quorum of every approval. A rule of a ToolPolicy can only raise it. */
export const approvalQuorumBlock = defineBlock({
  path: 'approvalQuorum',
  feature: 'approvals',
  schema: quorumSchema,
  rules: [quorumsCanBeFilled],
})

export type ApprovalQuorumConfig = Readonly<Static<typeof approvalQuorumBlock.schema>>
