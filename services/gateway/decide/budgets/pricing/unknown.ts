import { closest } from '@plat/core'
import { priceKeyOf } from './decode.ts'

/** Names that price keys can refer to. */
export interface Priceable {
  readonly providers: readonly string[]
  /** Null: the routes are not fully known. */
  readonly endpoints: readonly { readonly route: string; readonly priceScopes: readonly string[] }[] | null
}

/** Returns one message for each model price key that names an unknown provider, route or upstream. */
export function unknownPriceKeys(keys: readonly string[], { providers, endpoints }: Priceable): readonly string[] {
  const routes = endpoints === null ? null : [...new Set(endpoints.map(({ route }) => route))]
  const scopes = endpoints?.flatMap(({ priceScopes }) => priceScopes) ?? []
  return keys.flatMap((key) => {
    const named = priceKeyOf(key)
    if (named === null) return []
    const { provider, route, upstream } = named
    const problem =
      missing('provider', provider, providers) ??
      (route === null || routes === null ? null : missing('model route', route, routes)) ??
      (upstream === null || endpoints === null || scopes.includes(scopeOf(key))
        ? null
        : `no endpoint${route === null ? '' : ` of the route ${route}`} has the upstream ${upstream}`)
    return problem === null ? [] : [`models[${key}]: ${problem}`]
  })
}

function missing(what: string, name: string, known: readonly string[]): string | null {
  if (known.includes(name)) return null
  const meant = closest(name, known)
  return `no ${what} is named ${name}${meant === null ? '' : `; did you mean ${meant}?`}`
}

/** Returns the part before `<provider>/<model>`. */
function scopeOf(key: string): string {
  return key.slice(0, key.lastIndexOf('#') + 1)
}
