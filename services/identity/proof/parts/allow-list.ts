import { glob } from '@plat/core'

/** Which owners (cloud accounts, projects, subscriptions) may prove sessions of which namespaces. */
export type AllowList = (owner: string, namespace: string) => boolean

/**
 * Entries `<owner>` (every namespace) or `<owner>=<namespace>`; the namespace may hold `*`. An empty list would let every
 * customer of the cloud prove a session, so it throws, and so does an entry without an owner.
 */
export function allowList(flag: string, entries: readonly string[]): AllowList {
  if (entries.length === 0) throw new Error(`-${flag}: name at least one, or no proof could succeed`)
  const rows = entries.map((entry) => {
    const [owner = '', namespace = '*', more] = entry.split('=')
    if (owner === '' || namespace === '' || more !== undefined) {
      throw new Error(`-${flag} ${entry}: write <name> or <name>=<namespace>`)
    }
    return { owner, matches: glob(namespace) }
  })
  return (owner, namespace) => rows.some((row) => row.owner === owner && row.matches(namespace))
}

/** Entries `<key>=<value>` as a map. Throws on another form and on a key thatis listed twice. */
export function pairs(flag: string, entries: readonly string[]): ReadonlyMap<string, string> {
  const map = new Map<string, string>()
  for (const entry of entries) {
    const at = entry.indexOf('=')
    const [key, value] = [entry.slice(0, at), entry.slice(at + 1)]
    if (at < 1 || value === '') throw new Error(`-${flag} ${entry}: write <name>=<value>`)
    if (map.has(key)) throw new Error(`-${flag} ${entry}: ${key}is listed twice`)
    map.set(key, value)
  }
  return map
}
