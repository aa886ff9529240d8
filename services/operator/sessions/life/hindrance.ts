/** A VolumeSnapshot to create. */
export interface SnapshotRequest {
  readonly volumeClaim: string
  readonly className: string
}

/** Why a session cannot begin: a word for machines and a sentence for people. */
export interface Hindrance {
  readonly reason: string
  readonly message: string
  /** When to look again although nothing changed, in milliseconds. */
  readonly retryAfterMs?: number
  /** Missing object that the operator creates. */
  readonly snapshot?: SnapshotRequest
}
