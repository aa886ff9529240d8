import { hash } from 'node:crypto'
import type { Clock, Ids } from '@plat/core'
import type { Call, RedactedView, Target } from '../../../call/index.ts'
import { CHANGED } from '../quorum/ballot.ts'
import type { Question } from '../store/events.ts'
import { previewOf, type RedactAll, type WholeOptions, wholeOf } from './preview.ts'

/** Builds the question that approvers see for a call. `whole`: the arguments, if the preview is only a part of them and they can be stored. */
export async function questionOf(
  call: Call<'identity' | 'target' | 'pin' | 'decision' | 'redacted'>,
  { digest, quorum }: Pick<Question, 'digest' | 'quorum'>,
  using: {
    readonly clock: Clock
    readonly ids: Ids
    readonly timeoutMs: number
    readonly preview: WholeOptions
    readonly redactAll?: RedactAll | undefined
  },
): Promise<{ readonly question: Question; readonly whole: string | null }> {
  const { identity, target, decision, redacted } = call.facts
  const now = using.clock.now()
  const args = call.body?.args ?? null
  const view = redacted ?? redactedViewOf(target)
  const isUnseen = args !== null && view === null && using.preview.mode === 'redacted'
  const allRedacted = isUnseen ? ((await using.redactAll?.(args)) ?? null) : null
  const question = {
    id: using.ids.uuid(),
    digest,
    tenant: identity.tenant,
    namespace: identity.namespace,
    agent: identity.agent,
    session: identity.session,
    user: identity.user,
    target: target.key,
    server: target.server,
    tool: target.tool,
    method: call.method,
    argsSha256: args === null ? null : hash('sha256', args, 'hex'),
    argsBytes: args?.byteLength ?? 0,
    preview: previewOf(args, using.preview, view, allRedacted),
    policy: decision.policy,
    rule: decision.rule,
    reason: reasonOf(call),
    quorum,
    policyRevision: decision.revision,
    createdAt: now,
    expiresAt: now + using.timeoutMs,
  }
  return { question, whole: wholeOf(args, using.preview, view, allRedacted) }
}

/** Policy may not require this approval; then its reason is left out. */
function reasonOf({ facts: { target, pin, decision } }: Call<'target' | 'pin' | 'decision'>): string {
  if (pin?.approve === true) return CHANGED
  const required = target.requirements?.approval ?? null
  if (required === null) return decision.reason
  return decision.action === 'require_approval' ? `${decision.reason}; ${required}` : required
}

function redactedViewOf({ requirements }: Target): RedactedView | null {
  return requirements?.presentedArguments ? { text: requirements.presentedArguments, hits: 0 } : null
}
