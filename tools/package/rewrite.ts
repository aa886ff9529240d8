/** A file beside a module, named so that it is found from the file of a bundle too. */
const FILE_URL = /new URL\(\s*'(\.{0,2}[^':]+)',\s*import\.meta\.url\s*,?\s*\)/g

/** A library that is loaded on first use and synchronously. */
const LATE_LIBRARY = /createRequire\(import\.meta\.url\)\(('[^']+')\)/g

/** Check for an installed library; a bundle contains it. */
const LIBRARY_CHECK = /import\.meta\.resolve\('[^']+'\)/g

/** Statements for a module that is the program itself; a bundled one never is. */
const OWN_PROGRAM = /^if \(import\.meta\.main\) \{\n[\s\S]*?^\}\n/gm

/** Uses of a module's location. One that remains after the rewriting would refer to the file of the bundle. */
const OWN_PLACE = /import\.meta\.(?:url|dirname|filename|resolve|main)\b|\b__dirname\b|\b__filename\b/

export interface RewriteProblems {
  readonly problems: readonly string[]
}

/**
 * Returns a module of plat as it is bundled: URLs of files beside it lead to what `locate` returns, relative to the bundle's folder. Returns
 * problems if the module depends on its own location in another way, since that is lost.
 */
export function rewriteSource(source: string, locate: (name: string) => string): string | RewriteProblems {
  const rewritten = source
    .replace(LATE_LIBRARY, 'require($1)')
    .replace(LIBRARY_CHECK, "'bundled'")
    .replace(OWN_PROGRAM, '')
    .replace(FILE_URL, (_, name: string) => `new URL('${locate(name)}', __bundle)`)
  const problems = rewritten
    .split('\n')
    .flatMap((line, at) =>
      OWN_PLACE.test(line) && !/^\s*(?:\*|\/\/|\/\*)/.test(line) ? [`line ${at + 1}: ${line.trim()}`] : [],
    )
    .map((line) => `${line}: a bundled module finds its files only by \`new URL('<file>', import.meta.url)\``)
  return problems.length === 0 ? rewritten.replaceAll('__bundle', 'import.meta.url') : { problems }
}
