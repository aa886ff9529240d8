import { OAuthError } from '@plat/http/endpoints'

/** Retry-After in seconds for a pod refused by a busy or failing broker. */
const RETRY_AFTER_SECONDS = '1'

/** An object that has to change before a pod can be answered. */
export interface Watched {
  /** Path of the collection. */
  readonly path: string
  readonly name: string
  readonly resourceVersion: string
}

/** 425: nothing is wrong, but something does not exist yet. A long-poll waits for `watched` to change. */
export class NotReadyError extends OAuthError {
  readonly watched: Watched

  constructor(code: 'not_adopted' | 'not_prepared', description: string, watched: Watched) {
    super(425, code, description)
    this.watched = watched
  }
}

/** 403: what the pod presents, and what it, its Sandbox, its claim and its session say of each other, do not agree. */
export function denied(description: string): OAuthError {
  return new OAuthError(403, 'access_denied', description)
}

/** 410: the session is deleted, finished or expired. */
export function gone(description: string): OAuthError {
  return new OAuthError(410, 'session_gone', description)
}

/** 503 with Retry-After. */
export function unavailable(description: string): OAuthError {
  return new OAuthError(503, 'temporarily_unavailable', description, { 'retry-after': RETRY_AFTER_SECONDS })
}
