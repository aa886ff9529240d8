import path from 'node:path'

/** Folder of the dashboards in the chart. */
export const FOLDER = path.resolve(import.meta.dirname, '../../../deploy/chart/dashboards')

/** The parts of a dashboard that tests read. */
export interface Committed {
  readonly panels: readonly {
    readonly id: number
    readonly type: string
    readonly title: string
    readonly description?: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
    readonly targets?: readonly { readonly expr: string }[]
  }[]
}

/** Every PromQL expression of a dashboard, with Grafana's variables. */
export function expressionsOf({ panels }: Committed): readonly string[] {
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
}
