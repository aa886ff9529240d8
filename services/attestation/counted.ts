import { RefusalError } from '@plat/http/endpoints'
import { type AttestationEvent, type AuditParts, codeOf, recordRefused } from './audit.ts'
import type { Release } from './release/release.ts'

export interface Attempt<T> {
  readonly parts: AuditParts
  readonly event: AttestationEvent
  /** Calls `about` with the release as soon as it is known. */
  work(about: (release: Release) => void): Promise<T>
  succeeded(): void
  failed(reason: string): void
}

/** Counts and records the result of an attempt to release a token: every one is a success or a failure. */
export async function counted<T>({ parts, event, work, succeeded, failed }: Attempt<T>): Promise<T> {
  let release: Release | null = null
  try {
    const answer = await work((known) => {
      release = known
    })
    succeeded()
    return answer
  } catch (error) {
    failed(error instanceof RefusalError ? codeOf(error) : 'internal')
    if (error instanceof RefusalError) recordRefused(parts, event, error, release)
    throw error
  }
}
