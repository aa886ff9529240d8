/** Response shape of `/v1/sessions`. */

/** One session, with its taints and pending approvals. */
export interface SessionView {
  /** `<namespace>/<agent>/<session>`. */
  readonly id: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
  readonly tier: string
  /** RFC 3339. */
  readonly startedAt: string
  readonly lastActivity: string
  readonly calls: number
  readonly denied: number
  readonly pendingApprovals: number
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** Millionths of a currency (ISO 4217). */
  readonly spent: { readonly micros: number; readonly currency: string }
}
