import type { CelInput } from '@bufbuild/cel'
import type { Expr } from './meter.ts'

/** Names from `args` to a member that an expression reads: `['transfer', 'amount']`. */
export type ArgumentPath = readonly string[]

/** Returns the arguments that an expression reads by names that it holds itself. */
export function argumentPaths(expr: Expr | undefined): readonly ArgumentPath[] {
  const paths: ArgumentPath[] = []
  collect(expr, paths)
  return paths
}

/** Is notified of arguments that an expression reads and a call lacks. */
export interface MissingArguments {
  onMissing(argument: string): void
}

/** Notifies `sink` of the first argument that is missing, where `error` says that a member of this name is. */
export function reportMissing(
  paths: readonly ArgumentPath[],
  args: CelInput | undefined,
  error: { readonly message: string },
  sink: MissingArguments,
): void {
  const [, name] = /^field not found: (.*)$/s.exec(error.message) ?? []
  const missing = paths.map((path) => missingIn(path, args)).find((one) => one?.at(-1) === name)
  if (missing !== undefined && missing !== null) sink.onMissing(missing.join('.'))
}

/** Returns the path to the first missing member; null: none is missing. */
function missingIn(path: ArgumentPath, args: CelInput | undefined): ArgumentPath | null {
  let value: CelInput | undefined = args
  for (const [depth, name] of path.entries()) {
    if (!(value instanceof Map)) return path.slice(0, depth + 1)
    if (!value.has(name)) return path.slice(0, depth + 1)
    value = value.get(name)
  }
  return null
}

function collect(expr: Expr | undefined, paths: ArgumentPath[]): void {
  if (expr === undefined) return
  const path = pathOf(expr)
  if (path !== null && path.length > 0) {
    paths.push(path)
    return
  }
  for (const part of partsOf(expr)) collect(part, paths)
}

/** Returns the path of `args.a["b"]`; null for any other expression. `has(args.a)` reads nothing. */
function pathOf({ exprKind: kind }: Expr): ArgumentPath | null {
  if (kind.case === 'identExpr') return kind.value.name.replace(/^\./, '') === 'args' ? [] : null
  if (kind.case === 'selectExpr') {
    const { operand, field, testOnly } = kind.value
    const before = operand === undefined || testOnly ? null : pathOf(operand)
    return before === null ? null : [...before, field]
  }
  if (kind.case !== 'callExpr' || kind.value.function !== '_[_]') return null
  const [operand, key] = kind.value.args
  const before = operand === undefined ? null : pathOf(operand)
  const constant = key?.exprKind.case === 'constExpr' ? key.exprKind.value.constantKind : undefined
  return before === null || constant?.case !== 'stringValue' ? null : [...before, constant.value]
}

function partsOf({ exprKind: kind }: Expr): readonly (Expr | undefined)[] {
  switch (kind.case) {
    case 'selectExpr':
      return [kind.value.operand]
    case 'callExpr':
      return [kind.value.target, ...kind.value.args]
    case 'listExpr':
      return kind.value.elements
    case 'structExpr':
      return kind.value.entries.flatMap(({ keyKind, value }) => [
        value,
        keyKind.case === 'mapKey' ? keyKind.value : undefined,
      ])
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value
      return [iterRange, accuInit, loopCondition, loopStep, result]
    }
    default:
      return []
  }
}
