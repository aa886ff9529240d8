import { type Denial, deny, type Target } from '../../call/index.ts'
import { NO_PROFILE } from './config.ts'
import { compileProfile, type Profile, type ProfileConfig } from './profile.ts'

export interface BindingsConfig {
  readonly dlpProfiles: Readonly<Record<string, ProfileConfig>>
  readonly dlp: {
    readonly defaultProfile: string
    readonly namespaces: Readonly<Record<string, string>>
    readonly servers: Readonly<Record<string, string>>
    readonly models: Readonly<Record<string, string>>
  }
}

/** Null if nothing is scanned. */
type Bound = Profile | null

/**
 * Selects the profile of a call (docs/spec/gateway.md): the `dlpProfile` of the server or route, then `dlp.servers` or `dlp.models`, then
 * `dlp.namespaces` of the caller, then the default; `none` ends the search. Profiles are compiled once; a call costs a few lookups.
 */
export class Bindings {
  readonly #profiles: ReadonlyMap<string, Bound>
  readonly #default: Bound
  readonly #namespaces: ReadonlyMap<string, Bound>
  readonly #servers: ReadonlyMap<string, Bound>
  readonly #models: ReadonlyMap<string, Bound>

  constructor({ dlpProfiles, dlp }: BindingsConfig) {
    const compiled = Object.entries(dlpProfiles).map(
      ([name, profile]) => [name, compileProfile(name, profile)] as const,
    )
    this.#profiles = new Map<string, Bound>([...compiled, [NO_PROFILE, null]])
    this.#default = this.#named(dlp.defaultProfile)
    this.#namespaces = this.#bound(dlp.namespaces)
    this.#servers = this.#bound(dlp.servers)
    this.#models = this.#bound(dlp.models)
  }

  /** `own`: profile named by the server or route, or null. Returns a denial if it does not exist. */
  profileOf(
    target: Pick<Target, 'kind' | 'key' | 'server' | 'alias'>,
    own: string | null,
    namespace: string,
  ): Bound | Denial {
    if (own !== null) {
      const named = this.#profiles.get(own)
      return named === undefined ? missing(target, own) : named
    }
    const near = target.kind === 'model' ? this.#models.get(target.key) : this.#serverBinding(target)
    const bound = near === undefined ? this.#namespaces.get(namespace) : near
    return bound === undefined ? this.#default : bound
  }

  /** Servers are named in full, or by name only; one with two names by either. */
  #serverBinding({ key, server, alias }: Pick<Target, 'key' | 'server' | 'alias'>): Bound | undefined {
    if (this.#servers.size === 0) return undefined
    const names = [key, key.slice(key.indexOf('/') + 1), ...(alias === undefined ? [] : [server])]
    const name = names.find((one) => this.#servers.has(one))
    return name === undefined ? undefined : this.#servers.get(name)
  }

  #named(name: string): Bound {
    return name === '' ? null : (this.#profiles.get(name) ?? null)
  }

  #bound(names: Readonly<Record<string, string>>): ReadonlyMap<string, Bound> {
    return new Map(Object.entries(names).map(([name, profile]) => [name, this.#named(profile)]))
  }
}

function missing({ server }: Pick<Target, 'server'>, name: string): Denial {
  return deny('dlp_denied', `${server} names the DLP profile ${name}, which is not in dlpProfiles of this gateway`)
}
