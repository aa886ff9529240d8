import { readFileSync } from 'node:fs'
import path from 'node:path'
import { importsOf } from '../tidy/rules/imports.ts'
import { isNode, type Node, nodesOf, readSource, type Source } from '../tidy/source.ts'

/** Packages that the SDK may take files from: they do no more than compute. */
const OURS = /^@plat\/(core|keys|tokens)$/

/** Sources of a package that stand by themselves: path in the package to text. */
export type Gathered = ReadonlyMap<string, string>

/**
 * Gathers every file that `entry` reaches, as one tree with relative imports. Names imported from a package of this repository are
 * resolved through its index, which only re-exports, to the file that declares them.
 *
 * @throws Error with the import that leaves the tree.
 */
export function gather(root: string, entry: string): Gathered {
  const home = path.posix.dirname(entry)
  const waiting = new Set([entry])
  const gathered = new Map<string, string>()
  for (const file of waiting) {
    const source = readSource(file, readFileSync(path.join(root, file), 'utf8'))
    const { text, reached } = moved(root, home, source)
    for (const other of reached) waiting.add(other)
    gathered.set(placeOf(home, file), text)
  }
  return gathered
}

/** Own files keep their place, those of a package stand below `plat/`. */
function placeOf(home: string, file: string): string {
  return file.startsWith(`${home}/`) ? file.slice(home.length + 1) : file.replace(/^packages\//, 'plat/')
}

/** The file with imports that hold where it is put, and the files that they lead to. */
function moved(
  root: string,
  home: string,
  source: Source,
): { readonly text: string; readonly reached: readonly string[] } {
  const reached: string[] = []
  const at = (target: string) => {
    reached.push(target)
    const relative = path.posix.relative(path.posix.dirname(placeOf(home, source.path)), placeOf(home, target))
    return `'${relative.startsWith('.') ? '' : './'}${relative.replace(/\.ts$/, '.js')}'`
  }
  const edits: { readonly start: number; readonly end: number; readonly text: string }[] = []
  for (const node of nodesOf(source, 'ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration')) {
    const from = isNode(node.source) && typeof node.source.value === 'string' ? node.source.value : null
    if (from === null || from.startsWith('node:') || !isNode(node.source)) continue
    if (from.startsWith('.')) {
      const target = path.posix.join(path.posix.dirname(source.path), from)
      edits.push({ start: node.source.start, end: node.source.end, text: at(target) })
    } else {
      edits.push({ start: node.start, end: node.end, text: byFile(root, source, { node, from, at }) })
    }
  }
  const leaving = importsOf(source).find(({ start }) => source.text.startsWith('import(', start))
  if (leaving !== undefined) throw new Error(`${source.path}: imports ${leaving.from} when it runs`)
  const text = edits
    .sort((a, b) => b.start - a.start)
    .reduce((whole, edit) => whole.slice(0, edit.start) + edit.text + whole.slice(edit.end), source.text)
  return { text, reached }
}

/** One declaration that names a package, as one for each file that its names stand in. */
function byFile(
  root: string,
  source: Source,
  { node, from, at }: { readonly node: Node; readonly from: string; readonly at: (target: string) => string },
): string {
  const [, name] = OURS.exec(from) ?? []
  if (name === undefined) throw new Error(`${source.path}: imports ${from}, which the published package does not have`)
  const face = faceOf(root, `packages/${name}`)
  const places = new Map<string, string[]>()
  for (const specifier of specifiersOf(node)) {
    const words = source.text.slice(specifier.start, specifier.end)
    const wanted = words.replace(/^type /, '').split(' as ')[0] ?? ''
    const place = face.get(wanted)
    if (place === undefined) throw new Error(`${source.path}: ${from} has no "${wanted}"`)
    places.set(place, [...(places.get(place) ?? []), words])
  }
  const head = /^(?:import|export)(?: type)?/.exec(source.text.slice(node.start, node.end))?.[0] ?? ''
  return [...places].map(([place, words]) => `${head} { ${words.join(', ')} } from ${at(place)}`).join('\n')
}

/** The file of each export of a package's index. Renamed exports are not supported, because their files would have to change. */
function faceOf(root: string, home: string): ReadonlyMap<string, string> {
  const file = `${home}/index.ts`
  const source = readSource(file, readFileSync(path.join(root, file), 'utf8'))
  const places = nodesOf(source, 'ExportNamedDeclaration').flatMap((node) => {
    const from = isNode(node.source) ? String(node.source.value) : ''
    const words = specifiersOf(node).map((one) => source.text.slice(one.start, one.end).replace(/^type /, ''))
    return words.filter((word) => !word.includes(' ')).map((word) => [word, path.posix.join(home, from)] as const)
  })
  return new Map(places)
}

function specifiersOf(node: Node): readonly Node[] {
  return Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : []
}
