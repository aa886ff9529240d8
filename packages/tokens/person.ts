import { isObject } from './jws.ts'
import { BadClaim, isText, type Members, textClaim } from './members.ts'

/** The configured claim, or the first of the usual ones. An address that the provider says is not verified names nobody. */
export function userClaim(payload: Members, usernameClaim: string): string {
  if (usernameClaim !== '') return plainClaim(textClaimAt(payload, usernameClaim), usernameClaim)
  if (payload.preferred_username !== undefined) {
    return plainClaim(textClaim(payload, 'preferred_username'), 'preferred_username')
  }
  if (payload.email !== undefined && payload.email_verified !== false)
    return plainClaim(textClaim(payload, 'email'), 'email')
  return plainClaim(textClaim(payload, 'sub'), 'sub')
}

/** A claim by its name, or by a dotted path where no claim has the whole name: `realm_access.roles`. */
export function claimAt(payload: Members, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path]
  let value: unknown = payload
  for (const name of path.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** The same, which must be well-formed text. */
export function textClaimAt(payload: Members, path: string): string {
  const value = claimAt(payload, path)
  if (!isText(value)) throw new BadClaim(`claim "${path}" is missing or no string`)
  return value
}

/** Names go into records and headers: no control characters. */
export function plainClaim(text: string, claim: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new BadClaim(`claim "${claim}" has control characters`)
  return text
}
