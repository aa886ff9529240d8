import { member } from '@plat/core'
import type { Problem, Rule } from './block.ts'

/** Returns a rule for keys that are required while another is set: `because` ends the sentence `<path>: is required <because>`. */
export function requires(
  path: string,
  keys: readonly string[],
  when: (block: Record<string, unknown>) => boolean,
  because: string,
): Rule {
  return (block) =>
    when(block) ? keys.filter((key) => isUnset(block[key])).map((key) => missing(join(path, key), because)) : []
}

/** Returns a rule for a block that requires a top-level key of the file. */
export function requiresTop(key: string, when: (block: Record<string, unknown>) => boolean, because: string): Rule {
  return (block, file) => (when(block) && isUnset(file[key]) ? [missing(key, because)] : [])
}

/** Returns a rule for a key, nested or not, that names a DLP profile of the file, or the built-in one. Empty: no profile. */
export function namesProfile(path: string, builtIn: string): Rule {
  const [, ...names] = path.split('.')
  return (block, { dlpProfiles: profiles }) => {
    const named = names.reduce<unknown>(member, block)
    if (typeof named !== 'string' || named === '' || named === builtIn) return []
    if (typeof profiles === 'object' && profiles !== null && Object.hasOwn(profiles, named)) return []
    return [{ path, message: `dlpProfiles has no profile ${named}; ${builtIn} is built in`, severity: 'error' }]
  }
}

function missing(path: string, because: string): Problem {
  return { path, message: `is required ${because}`, severity: 'error' }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

/** Returns whether a value is absent, `''`, or an empty list or map. */
export function isUnset(value: unknown): boolean {
  return (
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  )
}

/** Returns a rule for a list of objects whose member `name`, or the given one, must be unique: `tokenVault.providers`. */
export function uniqueNames(path: string, unique = 'name'): Rule {
  const key = path.slice(path.lastIndexOf('.') + 1)
  return (block) => {
    const seen = new Set<unknown>()
    const list = block[key]
    return (Array.isArray(list) ? list : []).flatMap((item, index): Problem[] => {
      const name = member(item, unique)
      if (name === undefined || !seen.has(name)) {
        seen.add(name)
        return []
      }
      return [
        {
          path: `${path}[${index}].${unique}`,
          message: `duplicate ${unique}`,
          severity: 'error',
        },
      ]
    })
  }
}
