/** Somebody who decides approvals, as the admin API knows them: `user:ada`, or `token:admin`. */
interface Approver {
  readonly by: string
  readonly groups: readonly string[]
}

/** May they approve now, as far as the edge is concerned? */
export type ApproverCheck = (approver: Approver) => boolean

export interface ApproversOptions {
  readonly connected: () => boolean
  /** `offline.localApprovers`, `user:<name>` or groups; none while `offline.approvals` is `deny`. */
  readonly local: readonly string[]
}

/** Who may approve while the edge is disconnected (docs/spec/gateway.md, `offline.approvals`). Anybody may deny. */
export function createApproverCheck({ connected, local }: ApproversOptions): ApproverCheck {
  const entries = new Set(local)
  return ({ by, groups }) => {
    if (connected()) return true
    // The static token is nobody, and so is a group whose name reads like a user.
    return (isUser(by) && entries.has(by)) || groups.some((group) => !isUser(group) && entries.has(group))
  }
}

function isUser(name: string): boolean {
  return name.startsWith('user:')
}
