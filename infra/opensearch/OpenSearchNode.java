import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.join.ParentJoinPlugin;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/**
 * One OpenSearch node with k-NN on the loopback interface, for tests and for one machine. It has no security of its own.
 *
 * <p>Arguments: its folder and its HTTP port (0: any free one). Prints the port when it answers. Ends on SIGTERM, and
 * when its standard input ends: so it never outlives the process that started it.
 */
final class OpenSearchNode extends Node {
    private static final List<Class<? extends Plugin>> PLUGINS = List.of(
        Netty4Plugin.class,
        ReindexPlugin.class,
        PainlessPlugin.class,
        CommonAnalysisPlugin.class,
        MapperExtrasPlugin.class,
        ParentJoinPlugin.class,
        KNNPlugin.class
    );

    private OpenSearchNode(Environment environment) {
        super(environment, PLUGINS, true);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        for (String folder : List.of("config", "data", "logs", "modules", "plugins")) {
            Files.createDirectories(home.resolve(folder));
        }
        OpenSearchNode node = new OpenSearchNode(environment(home, arguments[1]));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        node.start();
        System.out.println(node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort());
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }

    private static Environment environment(Path home, String port) {
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("path.data", home.resolve("data"))
            .put("path.logs", home.resolve("logs"))
            .put("cluster.name", "weft")
            .put("node.name", "weft")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", port)
            .put("transport.port", 0)
            // A full disk is the machine's matter, and a misspelt name must not become an index.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("action.auto_create_index", false)
            .build();
        return InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "weft");
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (IOException error) {
            System.err.println("The node did not close: " + error);
        }
    }
}
