/** An approver as the admin API names them: `user:ada` or `token:admin`. */
interface Approver {
  readonly by: string
  readonly groups: readonly string[]
}

/** Returns whether the edge lets them approve now. */
export type ApproverCheck = (approver: Approver) => boolean

export interface ApproversOptions {
  readonly connected: () => boolean
  /** `offline.localApprovers`: `user:<name>` or groups; empty while `offline.approvals` is `deny`. */
  readonly local: readonly string[]
}

/** Restricts who may approve while the edge is disconnected (docs/spec/gateway.md, `offline.approvals`). Denials are not restricted. */
export function createApproverCheck({ connected, local }: ApproversOptions): ApproverCheck {
  const entries = new Set(local)
  return ({ by, groups }) => {
    if (connected()) return true
    // Excludes the static token, which names no person, and groups with names like a user's.
    return (isUser(by) && entries.has(by)) || groups.some((group) => !isUser(group) && entries.has(group))
  }
}

function isUser(name: string): boolean {
  return name.startsWith('user:')
}
