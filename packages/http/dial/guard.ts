import { isIP } from 'node:net'
import type { PoolBound } from '@plat/core'
import type { Log } from '@plat/process'
import { type AddressCheck, createAddressCheck } from './addresses.ts'
import { BlockedAddressError, ResidencyDeniedError } from './errors.ts'
import type { NameLookups } from './name-lookups.ts'
import { addressPolicies, type Purpose } from './purpose.ts'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

/** Where data may go: asked with every address before a connection to it (docs/spec/gateway.md, `sovereigntyPolicyFile`). */
export interface Residency {
  /** Tells rules apart: a connection that was opened under one is never used under another. */
  readonly mark: string
  /** `address` as text, already permitted by the policy of the purpose. */
  admits(address: string): boolean
}

/** What an address is judged by. */
export interface Aim {
  readonly purpose: Purpose
  readonly residency: Residency | undefined
}

/** An aim with the caller whose share of name look-ups is used; absent: the purpose and the domain of the name. */
export interface CallerAim extends Aim {
  readonly caller: string | undefined
}

type ResolvedAddresses = { address: string; family: number }[]
type LookupDone = (error: NodeJS.ErrnoException | null, found: ResolvedAddresses) => void

export interface GuardOptions {
  readonly allowedCIDRs?: readonly string[] | undefined
  readonly names: NameLookups
  readonly log: Log
  /** Called for each name that is not looked up because a bound on look-ups is met. */
  readonly onRefused?: (bound: PoolBound) => void
}

/** Decides where connections go. Names and addresses in a URL are held against the same policy. */
export class Guard {
  readonly #permits: AddressCheck
  readonly #names: NameLookups
  readonly #onRefused: ((bound: PoolBound) => void) | undefined
  readonly #log: Log

  /** Throws when an allowed range is malformed. */
  constructor({ allowedCIDRs = [], names, log, onRefused }: GuardOptions) {
    this.#permits = createAddressCheck(allowedCIDRs)
    this.#names = names
    this.#onRefused = onRefused
    this.#log = log
  }

  /**
   * One resolution for one connection: what is handed to the socket is what was checked, and nobody resolves again. A name with a
   * single forbidden address is refused as a whole.
   */
  resolve(hostname: string, aim: CallerAim, done: LookupDone): void {
    const caller = aim.caller ?? `${aim.purpose} ${domainOf(hostname)}`
    this.#names.resolve(hostname, caller, this.#onRefused).then(
      (found) => {
        for (const { address } of found) {
          const fault = this.#faultOf(hostname, address, aim)
          if (fault !== null) return done(fault, [])
        }
        done(found.length === 0 ? notFound(hostname) : null, [...found])
      },
      (error: unknown) => done(error instanceof Error ? error : notFound(hostname), []),
    )
  }

  /** Sockets ask `resolve` for names only; an address in the URL is checked here, before. Null: it may be connected to, or is a name. */
  faultOfLiteral(hostname: string, aim: Aim): Error | null {
    return isIP(hostname) === 0 ? null : this.#faultOf(hostname, hostname, aim)
  }

  #faultOf(hostname: string, address: string, { purpose, residency }: Aim): Error | null {
    if (!this.#permits(address, addressPolicies[purpose])) {
      this.#log.warn({ hostname, address, purpose }, 'A connection to a forbidden address was refused.')
      return new BlockedAddressError(hostname, address)
    }
    if (residency === undefined || residency.admits(address)) return null
    this.#log.warn({ hostname, address, purpose }, 'A connection to where data must not go was refused.')
    return new ResidencyDeniedError(hostname, address)
  }
}

/** The last two labels: names without a caller share by domain. */
function domainOf(hostname: string): string {
  return hostname.split('.').slice(-2).join('.')
}

function notFound(hostname: string): Error {
  return Object.assign(new Error(`${hostname} has no address.`), { code: 'ENOTFOUND' })
}
