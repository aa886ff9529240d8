import { isIP } from 'node:net'
import type { Log } from '@plat/process'
import { type AddressCheck, createAddressCheck } from './addresses.ts'
import { BlockedAddress, ResidencyDenied } from './errors.ts'
import { addressPolicies, type Purpose } from './purpose.ts'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

/** Where data may go: asked with every address before a connection to it (document 3, `sovereigntyPolicyFile`). */
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

type Found = { address: string; family: number }[]
type LookupDone = (error: NodeJS.ErrnoException | null, found: Found) => void

/** Decides where connections go. Names and addresses in a URL are held against the same policy. */
export class Guard {
  readonly #permits: AddressCheck
  readonly #lookup: Lookup
  readonly #log: Log

  /** Throws when an allowed range is malformed. */
  constructor(allowedCIDRs: readonly string[], lookup: Lookup, log: Log) {
    this.#permits = createAddressCheck(allowedCIDRs)
    this.#lookup = lookup
    this.#log = log
  }

  /**
   * One resolution for one connection: what is handed to the socket is what was checked, and nobody resolves again. A name with a
   * single forbidden address is refused as a whole.
   */
  resolve(hostname: string, aim: Aim, done: LookupDone): void {
    this.#lookup(hostname).then(
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
      return new BlockedAddress(hostname, address)
    }
    if (residency === undefined || residency.admits(address)) return null
    this.#log.warn({ hostname, address, purpose }, 'A connection to where data must not go was refused.')
    return new ResidencyDenied(hostname, address)
  }
}

function notFound(hostname: string): Error {
  return Object.assign(new Error(`${hostname} has no address.`), { code: 'ENOTFOUND' })
}
