export { type ConsoleAsset, writeAssets } from './asset.ts'
export { consoleAssets } from './assets.ts'
