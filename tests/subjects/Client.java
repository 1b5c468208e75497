import java.io.FileInputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Client WAY HOST: one request by one of Java's clients. */
class Client {
    public static void main(String[] args) throws Exception {
        String host = args[1];
        if (args[0].equals("HttpURLConnection")) {
            var connection = (HttpURLConnection) new URI("http://" + host + "/").toURL().openConnection();
            System.out.print(new String(connection.getInputStream().readAllBytes()));
            return;
        }
        var client = HttpClient.newBuilder().sslContext(trusting(System.getenv("CA"))).build();
        var request = HttpRequest.newBuilder(new URI("https://" + host + "/")).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
        System.exit(0);
    }

    static SSLContext trusting(String file) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (var stream = new FileInputStream(file)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(stream));
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }
}
