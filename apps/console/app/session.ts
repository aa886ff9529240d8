import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { ApiError, type Client, type Login, refusalOf, type Session } from '../api/client.ts'
import type { Live } from './live.ts'

/** The parts that every page uses: the person, the API and the events. */
export interface Shared {
  readonly session: Session
  readonly client: Client
  readonly live: Live
  /** Shows a short message, and reads it to screen readers. */
  readonly notify: (text: string, tone?: 'good' | 'bad') => void
}

export const SharedContext = createContext<Shared | null>(null)

/** @throws Error outside of a page */
export function useShared(): Shared {
  const shared = useContext(SharedContext)
  if (shared === null) throw new Error('a page is rendered inside of the frame')
  return shared
}

/** Roles that a person needs for what a page shows or does. The gateway decides; this only hides what it would refuse. */
export type Role = 'viewer' | 'approver' | 'killswitch' | 'auditor' | 'admin'

/** Whether the person has a role in some namespace, by itself or by another that includes it. */
export function hasRole({ roles }: Session, role: Role): boolean {
  if (roles.includes('admin') || roles.includes(role)) return true
  return role === 'viewer' && (roles.includes('approver') || roles.includes('killswitch'))
}

/** The session, or the ways to log in. @throws ApiError if the gateway does not respond */
export async function loadSession(to: string): Promise<Session | readonly Login[]> {
  const response = await fetched('/console/session', { credentials: 'same-origin' })
  if (response.ok) return response.json()
  if (response.status !== 401) throw await refusalOf(response, to)
  const { login } = await response.json()
  return Array.isArray(login) ? login : []
}

/** Exchanges the code of a one-time link for a session. @throws ApiError if it was used or is too old */
export async function redeemLink(code: string): Promise<void> {
  const response = await fetched('/console/link', {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })
  if (!response.ok) throw await refusalOf(response, '/console/')
}

/** Ends the session at the gateway. */
export async function logOut({ csrf }: Session): Promise<void> {
  await fetched('/console/logout', { method: 'POST', credentials: 'same-origin', headers: { 'x-plat-csrf': csrf } })
}

async function fetched(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch {
    throw new ApiError(
      0,
      'unreachable',
      'The gateway does not respond. Check that it runs and that you are connected to it.',
    )
  }
}
