import type { Client, Result } from '../../api/client.ts'
import type { Tone } from '../../ui/parts.tsx'

export type Approval = Result<'GET /v1/approvals/{id}'>

export const TONES: Readonly<Record<Approval['state'], Tone>> = {
  pending: 'warn',
  approved: 'good',
  used: 'good',
  denied: 'bad',
  expired: 'neutral',
  cancelled: 'neutral',
}

/** The ID under which the API has the session of an approval. */
export function sessionOf({ namespace, agent, session }: Pick<Approval, 'namespace' | 'agent' | 'session'>): string {
  return `${namespace}/${agent}/${session}`
}

/** The arguments that an approver sees. */
export interface VisibleArguments {
  readonly text: string
  /** Whether nothing of them is missing. */
  readonly isWhole: boolean
}

/** The preview, or the whole arguments where the preview is truncated and the gateway has them. */
export async function visibleArguments(
  client: Client,
  approval: Approval,
  signal: AbortSignal,
): Promise<VisibleArguments | null> {
  const { preview, wholeArguments, id } = approval
  if (preview === null || preview.mode === 'hash') return null
  if (!preview.truncated) return { text: preview.text, isWhole: true }
  if (typeof wholeArguments !== 'string') return { text: preview.text, isWhole: false }
  try {
    const { text } = await client.call('GET /v1/approvals/{id}/arguments', { params: { id }, signal })
    return { text, isWhole: true }
  } catch {
    return { text: preview.text, isWhole: false }
  }
}

/** Approvals of the agent that are searched for a previous one of the same tool. */
const PREVIOUS_LIMIT = 100

/** The last call of the same tool by the same agent that was approved before, with arguments to compare; null if there is none. */
export async function previousApproval(
  client: Client,
  approval: Approval,
  signal: AbortSignal,
): Promise<Approval | null> {
  const { namespace, agent, server, tool } = approval
  const states = ['used', 'approved'] as const
  const lists = await Promise.all(
    states.map((state) =>
      client.call('GET /v1/approvals', { query: { state, namespace, agent, limit: PREVIOUS_LIMIT }, signal }),
    ),
  )
  // IDs of approvals are UUIDv7, in the order of creation; `createdAt` has whole seconds.
  const earlier = lists
    .flatMap(({ items }) => items)
    .filter(({ id, server: of, tool: called }) => id < approval.id && of === server && called === tool)
    .filter(({ preview }) => preview !== null && preview.mode !== 'hash')
  return earlier.toSorted((a, b) => (a.id < b.id ? 1 : -1))[0] ?? null
}
