import { isIP } from 'node:net'
import type { PoolBound } from '@plat/core'
import type { Log } from '@plat/process'
import { type AddressCheck, createAddressCheck } from './addresses.ts'
import { BlockedAddressError, ResidencyDeniedError } from './errors.ts'
import type { NameLookups } from './name-lookups.ts'
import { addressPolicies, type Purpose } from './purpose.ts'

/** Residency rules: checked with every address before a connection to it (docs/spec/gateway.md, `sovereigntyPolicyFile`). */
export interface Residency {
  /** Identifies the rules: a connection opened under one mark is not used under another. */
  readonly mark: string
  /** `address` is text, already permitted by the policy of the purpose. */
  admits(address: string): boolean
}

/** Inputs of the address check. */
export interface Aim {
  readonly purpose: Purpose
  readonly residency: Residency | undefined
}

/** A target with the caller whose share of name look-ups is used; absent: the share of the purpose and the domain. */
export interface CallerAim extends Aim {
  readonly caller: string | undefined
}

type ResolvedAddresses = { address: string; family: number }[]
type LookupDone = (error: NodeJS.ErrnoException | null, found: ResolvedAddresses) => void

export interface GuardOptions {
  readonly allowedCIDRs?: readonly string[] | undefined
  readonly names: NameLookups
  readonly log: Log
  /** Called for each name that is refused because a look-up limit is reached. */
  readonly onRefused?: (bound: PoolBound) => void
}

/** Decides where connections may go. Names and literal addresses are subject to the same policy. */
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
   * Resolves once per connection: the socket uses exactly the checked addresses, and the name is not resolved again. A name with one forbidden
   * address is refused as a whole.
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

  /** Sockets call `resolve` for names only; a literal address in the URL is checked here. Returns null when it is allowed, or is a name. */
  faultOfLiteral(hostname: string, aim: Aim): Error | null {
    return isIP(hostname) === 0 ? null : this.#faultOf(hostname, hostname, aim)
  }

  #faultOf(hostname: string, address: string, { purpose, residency }: Aim): Error | null {
    if (!this.#permits(address, addressPolicies[purpose])) {
      this.#log.warn({ hostname, address, purpose }, 'a connection to a forbidden address was refused')
      return new BlockedAddressError(hostname, address)
    }
    if (residency === undefined || residency.admits(address)) return null
    this.#log.warn({ hostname, address, purpose }, 'a connection was refused because of a residency rule')
    return new ResidencyDeniedError(hostname, address)
  }
}

/** Returns the last two labels: names without a caller share by domain. */
function domainOf(hostname: string): string {
  return hostname.split('.').slice(-2).join('.')
}

function notFound(hostname: string): Error {
  return Object.assign(new Error(`${hostname} has no address.`), { code: 'ENOTFOUND' })
}
