/** A line of a comparison. */
export interface DiffLine<T> {
  readonly change: 'same' | 'added' | 'removed'
  readonly line: T
}

/** Longer middles are compared as a whole: cells of the table of common lines. */
const MAX_CELLS = 4_000_000

/** Compares two lists of lines: first what is equal at both ends, then the longest common part of the rest. */
export function diffLines<T>(
  before: readonly T[],
  after: readonly T[],
  textOf: (line: T) => string,
): readonly DiffLine<T>[] {
  const [old, young] = [before.map(textOf), after.map(textOf)]
  let head = 0
  while (head < old.length && head < young.length && old[head] === young[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, young.length) - head && old.at(-1 - tail) === young.at(-1 - tail)) tail++
  const same = (line: T): DiffLine<T> => ({ change: 'same', line })
  const [from, to] = [old.length - tail, young.length - tail]
  return [
    ...after.slice(0, head).map(same),
    ...middle({ before: before.slice(head, from), after: after.slice(head, to), textOf }),
    ...after.slice(to).map(same),
  ]
}

interface Middle<T> {
  readonly before: readonly T[]
  readonly after: readonly T[]
  readonly textOf: (line: T) => string
}

function middle<T>({ before, after, textOf }: Middle<T>): readonly DiffLine<T>[] {
  const removed = (line: T): DiffLine<T> => ({ change: 'removed', line })
  const added = (line: T): DiffLine<T> => ({ change: 'added', line })
  if (before.length * after.length > MAX_CELLS) return [...before.map(removed), ...after.map(added)]
  const common = commonLengths(before.map(textOf), after.map(textOf))
  const lines: DiffLine<T>[] = []
  const width = after.length + 1
  let [i, j] = [0, 0]
  for (
    let [old, young] = [before[i], after[j]];
    old !== undefined && young !== undefined;
    [old, young] = [before[i], after[j]]
  ) {
    const isSame = textOf(old) === textOf(young)
    const isRemoved = (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0)
    lines.push(isSame ? { change: 'same', line: young } : isRemoved ? removed(old) : added(young))
    if (isSame || isRemoved) i++
    if (isSame || !isRemoved) j++
  }
  return [...lines, ...before.slice(i).map(removed), ...after.slice(j).map(added)]
}

/** The length of the longest common part of what follows each pair of positions. */
function commonLengths(before: readonly string[], after: readonly string[]): Uint32Array {
  const width = after.length + 1
  const table = new Uint32Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const [below = 0, right = 0, diagonal = 0] = [
        table[(i + 1) * width + j],
        table[i * width + j + 1],
        table[(i + 1) * width + j + 1],
      ]
      table[i * width + j] = before[i] === after[j] ? diagonal + 1 : Math.max(below, right)
    }
  }
  return table
}
