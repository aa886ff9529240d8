export { type HomeEnv, homeOf, type PlatFolder } from './shared/home.ts'
export { CommandError, type Output, terminal } from './shared/output.ts'
export { reportProblems } from './up/problems.ts'
export { screen, startUp, type Up, type UpOptions } from './up/up.ts'
