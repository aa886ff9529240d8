/** A step into an answer: a member of an object or an element of a list; undefined where there is none. */
export function step(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value[Number(name)]
  const entry = Object.entries(value).find(([key]) => key === name)
  return entry?.[1]
}

/** Several steps. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce(step, value)
}

/** The elements of a list; none where it is no list. */
export function elements(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A score as a number; a yes or no counts as 1 or 0. Null: it is neither. */
export function scoreOf(value: unknown): number | null {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'number' ? value : null
}
