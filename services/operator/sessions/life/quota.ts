import { isTerminal, type Resource } from '@plat/resources'

type Session = Resource<'AgentSession'>

/** Has the session begun, and not ended? */
export function isActive({ status }: Session): boolean {
  return status?.startedAt !== undefined && !isTerminal(status.phase)
}

/**
 * Is there room for a session that has not begun, beside all others of its Agent (document 2, `maxConcurrentSessions`; 0: unlimited)? The
 * oldest that wait come first.
 */
export function hasRoom(session: Session, siblings: readonly Session[], max: number): boolean {
  if (max === 0) return true
  const before = siblings.filter((other) => isActive(other) || (isWaiting(other) && isOlder(other, session)))
  return before.length < max
}

/** Who is told to wait by others than the quota does not keep younger ones out. */
function isWaiting({ spec, status }: Session): boolean {
  if (status?.startedAt !== undefined || isTerminal(status?.phase) || spec.suspend === true || spec.cancel === true)
    return false
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.reason === 'QuotaExceeded'
}

function isOlder(a: Session, b: Session): boolean {
  const [first, second] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp} ${metadata.name}`)
  return String(first) < String(second)
}
