import type { Problem, Rule } from './block.ts'

/** A rule for keys that must be set while something else is: `because` ends the sentence `<path>: is required <because>`. */
export function requires(
  path: string,
  keys: readonly string[],
  when: (block: Record<string, unknown>) => boolean,
  because: string,
): Rule {
  return (block) =>
    when(block) ? keys.filter((key) => isUnset(block[key])).map((key) => missing(join(path, key), because)) : []
}

/** A rule for a block that needs a key of the file's top level. */
export function requiresTop(key: string, when: (block: Record<string, unknown>) => boolean, because: string): Rule {
  return (block, file) => (when(block) && isUnset(file[key]) ? [missing(key, because)] : [])
}

/** A rule for a key, nested or not, that names a member of the map `map` of the file, or something that is built in. Empty: it names none. */
export function namesOneOf(path: string, map: string, builtIn: readonly string[] = []): Rule {
  const [, ...names] = path.split('.')
  return (block, file) => {
    const named = names.reduce<unknown>(memberOf, block)
    const known = file[map]
    if (typeof named !== 'string' || named === '' || builtIn.includes(named)) return []
    if (typeof known === 'object' && known !== null && Object.hasOwn(known, named)) return []
    const also = builtIn.length === 0 ? '' : `; ${builtIn.join(', ')} is built in`
    return [{ path, message: `${map} has no ${named}${also}`, severity: 'error' }]
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function missing(path: string, because: string): Problem {
  return { path, message: `is required ${because}`, severity: 'error' }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

/** Absent, `''`, or an empty list or map. */
export function isUnset(value: unknown): boolean {
  return (
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  )
}

/** A rule for a list of objects whose member `name`, or another one, must differ: `tokenVault.providers`. */
export function uniqueNames(path: string, member = 'name'): Rule {
  const key = path.slice(path.lastIndexOf('.') + 1)
  return (block) => {
    const seen = new Set<unknown>()
    const list = block[key]
    return (Array.isArray(list) ? list : []).flatMap((item, index): Problem[] => {
      const name = memberOf(item, member)
      if (name === undefined || !seen.has(name)) {
        seen.add(name)
        return []
      }
      return [
        {
          path: `${path}[${index}].${member}`,
          message: `the ${member} is taken by an entry before`,
          severity: 'error',
        },
      ]
    })
  }
}
